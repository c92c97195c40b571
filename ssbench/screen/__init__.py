"""Output on standard error."""
