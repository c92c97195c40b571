"""Rings of swift-ring-builder, as arrays of devices by partition and replica, for simulated clusters.

They are data, since Swift brings eventlet, which the processes of tests do without. Make them again with
``python tests/helpers/rings.py``.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

_FILE = Path(__file__).parent.parent / "data" / "rings.npz"
#: Devices, nodes, replicas; device i is on node i modulo nodes.
SHAPES = (
    *((4, 3, 3), (6, 3, 3), (9, 3, 3), (12, 4, 3), (12, 4, 6), (60, 5, 3), (60, 10, 3)),
    *((4, 3, 2), (6, 3, 2), (9, 3, 2), (12, 4, 2)),
)
KINDS = ("fresh", "grown")
_PART_POWER = 10


@lru_cache
def ring(devices: int, nodes: int, replicas: int, kind: str) -> np.ndarray:
    """Return the devices of each partition; a ring that has ``grown`` had a node less at first."""
    with np.load(_FILE) as rings:
        found: np.ndarray = rings[_name(devices, nodes, replicas, kind)]
    return found


def _name(*words: object) -> str:
    return "-".join(map(str, words))


def _build(devices: int, nodes: int, replicas: int, kind: str) -> np.ndarray:
    from swift.common.ring import RingBuilder  # noqa: PLC0415

    builder = RingBuilder(_PART_POWER, replicas, 0)

    def add(numbers: list[int]) -> None:
        for number in numbers:
            node = number % nodes
            builder.add_dev(
                {"id": number, "region": 1, "zone": 1, "ip": f"10.0.0.{node + 1}", "port": 6200,
                 "device": f"d{number}", "weight": 100.0, "meta": ""}
            )  # fmt: skip
        builder.rebalance(seed="1")

    every = range(devices)
    if kind == "grown":
        last = devices - 1 if devices < 6 else None
        new = [i for i in every if (i == last if last else i % nodes == nodes - 1)]
        add([i for i in every if i not in new])
        add(new)
        for _ in range(20):
            builder.pretend_min_part_hours_passed()
            if not builder.rebalance(seed="1")[0]:
                break
    else:
        add(list(every))
    table = np.array(builder._replica2part2dev).T
    return table.astype(np.uint8)


def main() -> None:
    rings = {_name(*shape, kind): _build(*shape, kind) for shape in SHAPES for kind in KINDS}
    for name, table in rings.items():
        sets = {tuple(sorted(row)) for row in table.tolist()}
        print(f"{name}: {len(sets)} sets of devices in {len(table)} partitions")
    np.savez_compressed(_FILE, **rings)  # type: ignore[arg-type]  # keywords are arrays, or allow_pickle


if __name__ == "__main__":
    main()
