"""A scenario, as frozen records."""

from __future__ import annotations

from dataclasses import dataclass

#: Weights of operations by name, or those of create, read, update and delete in this order.
Weights = tuple[float, float, float, float] | dict[str, float]

#: The operations that a list of four weights stands for.
CRUD = ("create", "read", "update", "delete")


@dataclass(frozen=True, slots=True)
class SizeClass:
    """A size class that is in use: sizes in bytes, both ends included.

    ``crud_profile`` holds the weights that apply to this class (its own, else the scenario's), as the
    file gives them.
    """

    name: str
    size_min: int
    size_max: int
    initial_files: int
    crud_profile: Weights

    @property
    def weights(self) -> dict[str, float]:
        """Return the relative weights of operations, by name."""
        if isinstance(self.crud_profile, dict):
            return self.crud_profile
        return dict(zip(CRUD, self.crud_profile, strict=True))


@dataclass(frozen=True, slots=True)
class Scenario:
    """A benchmark to run. ``size_classes`` are those with initial files, in the order of ``sizes``.

    One of ``run_seconds`` and ``operation_count`` is set, the other is None.
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
