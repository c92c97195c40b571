"""What users do, by the logs of their store: figures, and a scenario that does the same."""
