"""The site of the documentation: ``tox -e docs`` writes it to doc/_build/html."""

from __future__ import annotations

import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

_log = logging.getLogger(__name__)
ROOT = Path(__file__).resolve().parent.parent

project = "ssbench"
author = "the ssbench contributors"
release = re.search(r'__version__ = "(.*)"', (ROOT / "ssbench" / "__init__.py").read_text()).group(1)
extensions: list[str] = []
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"ssbench {release}"
html_extra_path = ["report-schema.json", "grafana-dashboard.json"]
html_show_sphinx = False
html_copy_source = False


def link_pages(app: Sphinx, doctree: nodes.document) -> None:
    """Let links to other pages' files, which work where the repository is browsed, lead to pages of the site.

    A link to a page that is not there is a warning.
    """
    for link in doctree.findall(nodes.reference):
        file, _, anchor = link.get("refuri", "").partition("#")
        if ":" in file or not file.endswith(".rst"):
            continue
        name = file.removesuffix(".rst")
        if name not in app.env.found_docs:
            _log.warning("no page %s", file, location=link)
        link["refuri"] = f"{name}.html" + (f"#{anchor}" if anchor else "")


def write_llms_txt(app: Sphinx, error: Exception | None) -> None:
    """Write the list of pages for language models, with links to pages of the site."""
    if error is None:
        text = (ROOT / "llms.txt").read_text(encoding="utf-8")
        links = re.sub(r"\(doc/([\w-]+)\.rst\)", r"(\1.html)", text).replace("(doc/", "(")
        (Path(app.outdir) / "llms.txt").write_text(links, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Register what this file adds to Sphinx."""
    app.connect("doctree-read", link_pages)
    app.connect("build-finished", write_llms_txt)
