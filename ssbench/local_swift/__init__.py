"""A real OpenStack Swift on loopback, for people and tests without a cluster."""
