"""What a scenario file says, checked and frozen."""

from __future__ import annotations

from dataclasses import dataclass

Weights = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class SizeClass:
    """A size class that is in use: sizes in bytes, both ends included.

    ``crud_profile`` holds the weights of create, read, update and delete that apply to this class
    (its own, else the scenario's).
    """

    name: str
    size_min: int
    size_max: int
    initial_files: int
    crud_profile: Weights


@dataclass(frozen=True, slots=True)
class Scenario:
    """A benchmark to run. ``size_classes`` are those with initial files, in the order of ``sizes``.

    ``run_seconds``, when set, wins over ``operation_count``; one of the two is set.
    ``data`` is the scenario file's own content, as plain data.
    """

    name: str
    size_classes: tuple[SizeClass, ...]
    user_count: int
    operation_count: int | None = None
    run_seconds: float | None = None
    container_base: str = "ssbench"
    container_count: int = 100
    container_concurrency: int = 10
    delete_after: int | None = None
    policy: str | None = None
    data: dict[str, object] | None = None
