"""What is written for users is valid reStructuredText."""

from __future__ import annotations

from pathlib import Path

import docutils.core
import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.rst"), *ROOT.glob("doc/*.rst"), *ROOT.glob("bench/*.rst")])


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_it_is_valid(path: Path) -> None:
    settings = {"halt_level": 2, "report_level": 5, "syntax_highlight": "none"}
    docutils.core.publish_doctree(path.read_text(), str(path), settings_overrides=settings)
