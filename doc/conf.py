"""The site of the documentation and the manual pages of the commands: ``tox -e docs``, to doc/_build."""

from __future__ import annotations

import posixpath
import re
import shutil
import sys
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

_log = logging.getLogger(__name__)
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(Path(__file__).parent))

import command_pages  # noqa: E402  # beside this file
import figure_page  # noqa: E402

from ssbench import __version__  # noqa: E402

project = "ssbench"
author = "the ssbench contributors"
release = __version__
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"ssbench {release}"
html_extra_path = ["report-schema.json", "grafana-dashboard.json"]
html_show_sphinx = False
html_copy_source = False
man_pages = [(f"commands/{page.file}", page.file, page.summary, author, 1) for page in command_pages.pages()]


def write_pages(app: Sphinx) -> None:
    """Write the pages of the commands and of the figures, and leave those alone that have not changed."""
    texts = {f"commands/{page.file}.rst": page.text for page in command_pages.pages()}
    for name, text in {**texts, "generated/figures.rst": figure_page.text()}.items():
        path = Path(app.srcdir) / name
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def link_pages(app: Sphinx, doctree: nodes.document) -> None:
    """Let links to other pages' files, which work where the repository is browsed, lead to pages of the site.

    A link to a page that is not there is a warning.
    """
    for link in doctree.findall(nodes.reference):
        file, _, anchor = link.get("refuri", "").partition("#")
        if ":" in file or not file.endswith(".rst"):
            continue
        name = posixpath.normpath(posixpath.join(app.env.docname, "..", file.removesuffix(".rst")))
        if name not in app.env.found_docs:
            _log.warning("no page %s", file, location=link)
        link["refuri"] = f"{file.removesuffix('.rst')}.html" + (f"#{anchor}" if anchor else "")


def copy_example(app: Sphinx, error: Exception | None) -> None:
    """Copy the files of the example, in a folder as in the repository."""
    if error is None and app.builder.format == "html":
        shutil.copytree(Path(app.srcdir) / "example", Path(app.outdir) / "example", dirs_exist_ok=True)


def write_llms_txt(app: Sphinx, error: Exception | None) -> None:
    """Write the list of pages for language models, with links to pages of the site."""
    if error is None and app.builder.name == "html":
        text = (ROOT / "llms.txt").read_text(encoding="utf-8")
        links = re.sub(r"\(doc/([\w-]+)\.rst\)", r"(\1.html)", text).replace("(doc/", "(")
        (Path(app.outdir) / "llms.txt").write_text(links, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Register what this file adds to Sphinx."""
    app.connect("builder-inited", write_pages)
    app.connect("doctree-read", link_pages)
    app.connect("build-finished", copy_example)
    app.connect("build-finished", write_llms_txt)
