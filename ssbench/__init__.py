"""A benchmark suite for OpenStack Swift."""

__version__ = "1.0.0"
