"""Limits beyond which figures say more of the load generator than of the store."""

from __future__ import annotations

#: A process that used more of a core than this was itself the limit, where users were idle.
BUSY_CPU_SHARE = 0.9
