"""Add an operation, ``peek``, to each program whose PYTHONPATH has this folder."""

from ssbench.scenario.operations import OPERATIONS, Effect, OperationKind

OPERATIONS.add(OperationKind(code=99, name="peek", method="HEAD", effect=Effect.READS, times_first_byte=True))
