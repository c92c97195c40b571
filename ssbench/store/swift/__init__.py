"""OpenStack Swift: authentication, containers, and requests for objects, with the client of ``http``."""
