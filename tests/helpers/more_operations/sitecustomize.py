"""Add an operation, ``peek``, to each program whose PYTHONPATH has this folder."""

from ssbench.operations import OPERATIONS, Effect, Operation

OPERATIONS.add(Operation(code=99, name="peek", method="HEAD", effect=Effect.READS, times_first_byte=True))
