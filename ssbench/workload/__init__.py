"""The operations that a run draws, and the objects that exist for them."""
