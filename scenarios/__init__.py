"""The scenarios that ship with ssbench, found by their bare name."""
