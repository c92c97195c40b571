"""Engines: what carries out the jobs of a worker, behind one contract."""
