"""Names of containers and objects, which are derived from small numbers."""

from __future__ import annotations


def container_name(base: str, number: int, policy: str | None) -> str:
    """``<base>_<six or more digits>``, with ``_<policy>`` behind where one is set."""
    return f"{base}_{number:06d}_{policy}" if policy else f"{base}_{number:06d}"


def object_name(size_class: str, number: int) -> str:
    """``<size class>_<six or more digits>``."""
    return f"{size_class}_{number:06d}"
