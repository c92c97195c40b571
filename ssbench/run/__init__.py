"""A run, from its options to its outcome."""
