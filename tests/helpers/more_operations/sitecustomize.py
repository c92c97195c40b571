"""Add an operation, ``head``, to each program whose PYTHONPATH has this folder."""

from ssbench.operations import OPERATIONS, Effect, Operation

OPERATIONS.add(Operation(code=9, name="head", method="HEAD", effect=Effect.READS, times_first_byte=True))
