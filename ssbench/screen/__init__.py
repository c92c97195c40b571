"""What a user sees on standard error."""
