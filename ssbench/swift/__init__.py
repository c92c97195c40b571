"""Talking to Swift: authentication, containers, and the fast path for objects."""
