"""Results of a benchmark, with what they were measured on, as a JSON file."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from typing import Any


def save(path: Path, **found: Any) -> None:
    """Write it, and make the folder where it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    report = {"python": platform.python_version(), "cores": os.cpu_count(), **found}
    path.write_text(json.dumps(report, indent=1) + "\n")
