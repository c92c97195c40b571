"""What every part of ssbench may use, and what uses no other part of it."""
