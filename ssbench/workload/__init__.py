"""What a run does: the operations drawn, the objects that exist."""
