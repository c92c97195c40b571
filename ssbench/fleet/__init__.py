"""The master's side of a fleet: messages, sockets, who holds which job."""
