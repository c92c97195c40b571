"""Logs: their files, what is around a message, and a reader of each format."""
