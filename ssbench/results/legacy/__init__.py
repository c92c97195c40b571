"""Readers of the stat files of ssbench 0.x, which are not written any more."""
