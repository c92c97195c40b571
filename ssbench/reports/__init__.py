"""Reports: one file a format, all fed by the same numbers."""
