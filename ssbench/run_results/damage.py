"""How a reader says that a file breaks off."""


class DamageError(ValueError):
    """What follows cannot be read; what was read before is kept. The text is for a warning."""
