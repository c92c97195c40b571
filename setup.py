"""What pyproject.toml cannot say: the version, manual pages, and an sdist of the same bytes each time."""

from __future__ import annotations

import gzip
import os
import sys
import tarfile
from pathlib import Path

from docutils import nodes
from docutils.core import publish_string
from docutils.parsers.rst import Directive, directives
from docutils.writers import manpage
from setuptools import setup
from setuptools.command.sdist import sdist

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / ".ci"))
import source_version  # noqa: E402 - it is found by that path


class ReproducibleSdist(sdist):
    """An sdist with the time of ``SOURCE_DATE_EPOCH`` (seconds since 1970) and no user, where that is set.

    setuptools heeds that variable in wheels only; see https://reproducible-builds.org/specs/source-date-epoch/.
    """

    def make_archive(self, base_name, format, root_dir=None, base_dir=None, owner=None, group=None):  # noqa: D102
        epoch = os.environ.get("SOURCE_DATE_EPOCH")
        if epoch is None or format != "gztar":
            return super().make_archive(base_name, format, root_dir, base_dir, owner, group)
        target = Path(f"{base_name}.tar.gz")
        target.parent.mkdir(parents=True, exist_ok=True)

        def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
            member.mtime = int(epoch)
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            return member

        files = sorted(path for path in Path(base_dir).rglob("*") if path.is_file())
        with (
            target.open("wb") as raw,
            gzip.GzipFile("", "wb", mtime=int(epoch), fileobj=raw) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            for path in files:
                archive.add(path, filter=plain)
        return str(target)


class Option(Directive):
    """An option with its text, as an item of a definition list."""

    has_content = True
    required_arguments = 1
    final_argument_whitespace = True

    def run(self):  # noqa: D102
        found = nodes.definition("")
        self.state.nested_parse(self.content, self.content_offset, found)
        item = nodes.definition_list_item("", nodes.term("", self.arguments[0]), found)
        return [nodes.definition_list("", item)]


class Program(Option):
    """The program to which options belong, of which a page has one."""

    def run(self):  # noqa: D102
        return []


def write_manual_pages() -> None:
    """Write the manual page of each command to the folder ``man``, from the parser of the command.

    The pages are those of the site (doc/command_pages.py), whose directives for options are Sphinx's; here
    they are definition lists, so that a build needs no Sphinx.
    """
    sys.path[:0] = [str(ROOT), str(ROOT / "doc")]
    import command_pages  # noqa: PLC0415 - it is found by that path, and imports ssbench

    directives.register_directive("option", Option)
    directives.register_directive("program", Program)
    folder = ROOT / "man"
    folder.mkdir(exist_ok=True)
    for page in command_pages.pages():
        # A title and a subtitle, which the writer takes for the line below NAME; the rest has a third style.
        name, brief = page.file, page.summary
        head = ["=" * len(name), name, "=" * len(name), "", "-" * len(brief), brief, "-" * len(brief), ""]
        text = "\n".join([*head, ":Manual section: 1", "", *page.text.split("\n")[2:]])
        settings = {
            "halt_level": 2,
            "input_encoding": "unicode",
            "output_encoding": "utf-8",
            "datestamp": None,
        }
        made = publish_string(text, writer=manpage.Writer(), settings_overrides=settings)
        (folder / f"{page.file}.1").write_bytes(made)


version = source_version.find_version(ROOT)
# Files that a build makes; setuptools looks for them when it starts.
if {"bdist_wheel", "sdist", "editable_wheel", "build", "build_py", "develop", "install"} & {*sys.argv}:
    source_version.write_version(ROOT, version)
if {"bdist_wheel", "sdist"} & {*sys.argv}:
    write_manual_pages()
setup(version=version, cmdclass={"sdist": ReproducibleSdist})
