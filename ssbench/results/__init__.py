"""Results of operations: one table of their fields, and everything that follows from it.

A result is data whether it succeeded or not. The master makes a row of each, which costs little;
:class:`~.block.ResultBlock` holds thousands of them as numpy columns.
"""
