"""Genuine answers of recon, and servers that answered."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ssbench.results.cluster_observation import Server, State

DATA = Path(__file__).parents[1] / "data" / "cluster"


def genuine_answers(server: str) -> dict[str, bytes]:
    """What a real Swift 2.38.3 answered, by path."""
    lines = (DATA / "recon.txt").read_text().splitlines()
    found = (re.fullmatch(rf"{server}:\d+ /recon/(\S+) (.*) \[200\]", line) for line in lines)
    return {match[1]: match[2].encode() for match in found if match}


def server(number: int, before: State | None, after: State | None = None, **facts: Any) -> Server:
    url = f"http://10.0.0.{number}:{facts.pop('port', 6200)}"
    return Server(url, facts.pop("kind", "object"), asked=3, before=before, after=after, **facts)
