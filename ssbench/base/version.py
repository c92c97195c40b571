"""The version of this package: said here alone."""

__version__ = "1.0.0"
