"""What writes any document: a module for each format, which has its name and a function ``render``."""
