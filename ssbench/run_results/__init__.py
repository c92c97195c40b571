"""Stat files: today's format is written and read, every older one is read."""
