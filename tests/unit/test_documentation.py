"""What is written for users is valid reStructuredText, and its links lead somewhere."""

from __future__ import annotations

import configparser
import re
import shlex
import textwrap
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import docutils.core
import docutils.nodes
import module_list
import pytest
import yaml
from field_table import kept_counters, made_counters

from ssbench.cli import master
from ssbench.document.figures import FIGURES, find_figure
from ssbench.scenario.scenario_reading import read_scenario

ROOT = Path(__file__).parents[2]
#: For Sphinx alone.
INDEX = ROOT / "doc" / "index.rst"
DOCUMENTS = sorted({*ROOT.glob("*.rst"), *ROOT.glob("doc/*.rst"), *ROOT.glob("bench/*.rst")} - {INDEX})


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_it_is_valid(path: Path) -> None:
    settings = {"halt_level": 2, "report_level": 5, "syntax_highlight": "none"}
    docutils.core.publish_doctree(path.read_text(), str(path), settings_overrides=settings)


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.rst").read_text("utf-8").split()) <= 900


def test_contributing_is_short() -> None:
    assert len((ROOT / "CONTRIBUTING.rst").read_text("utf-8").split()) <= 1_000


@pytest.mark.parametrize(
    "path", [*DOCUMENTS, ROOT / "llms.txt", ROOT / "AGENTS.md"], ids=lambda path: path.name
)
def test_links_lead_to_files(path: Path) -> None:
    links = re.findall(r"<([^<>:\s]+)>`_|\]\(([^():\s]+)\)", path.read_text())
    targets = [(first or second).partition("#")[0] for first, second in links]
    assert [each for each in targets if not (path.parent / each).exists()] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_to_sections(path: Path) -> None:
    links = re.findall(r"<([^<>:\s]+\.rst)#([^<>\s]+)>`_", path.read_text())
    assert [each for each in links if each[1] not in sections((path.parent / each[0]).read_text())] == []


def sections(text: str) -> set[str]:
    """The anchors of the sections of a page: what docutils and Sphinx make of their titles."""
    return {
        docutils.nodes.make_id(title) for title in re.findall(r"^(\S.*)\n(?:=+|-+|~+)$", text, re.MULTILINE)
    }


def rows_of_changes() -> list[str]:
    """Return the rows of the table that says where to make changes."""
    text = (ROOT / "doc" / "where-to-change.rst").read_text()
    table = text.partition("   * - what\n")[2].partition("\n\n\n")[0]
    return table.split("\n   * - ")[1:]


def find_named_path(name: str) -> Path | None:
    """Return the file or folder that the table calls so; of one with a placeholder the folder it is in."""
    for folder in (ROOT / "ssbench", ROOT / "tests" / "unit", ROOT):
        path = folder / name
        if "NAME" in path.name:
            path = path.parent
        if path.exists():
            return path
    return None


@pytest.mark.parametrize("row", rows_of_changes(), ids=lambda row: row.partition("\n")[0])
def test_changes_name_files_that_exist_and_what_is_in_them(row: str) -> None:
    literals = [" ".join(each.split()) for each in re.findall(r"``([^`]+)``", row.partition("\n")[2])]
    named = [each for each in literals if "/" in each or each.endswith((".py", ".rst"))]
    paths = {each: find_named_path(each) for each in named if " " not in each}
    assert paths, "a row names the files"
    assert [name for name, path in paths.items() if path is None] == []
    files = [
        each for path in paths.values() if path for each in ([path] if path.is_file() else path.glob("*.py"))
    ]
    texts = [path.read_text("utf-8") for path in files]
    words = [each.replace("...", r"\w+") for each in literals if re.fullmatch(r"[\w.]+", each)]
    missing = [
        word
        for word in words
        if word not in paths and not any(re.search(rf"\b{word}\b", text) for text in texts)
    ]
    assert [word for word in missing if find_named_path(word) is None] == []


def test_there_is_a_row_for_what_is_added_often() -> None:
    rows = {row.partition("\n")[0].partition(" of ")[0] for row in rows_of_changes()}
    often = {"sub-command", "option", "scenario key", "operation", "figure", "format", "store", "log format"}
    assert often | {"condition", "wait"} <= {row.partition(" (")[0] for row in rows}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_documents_name_modules_that_exist(path: Path) -> None:
    named = re.findall(r"``(?:python )?([a-z_./]+/[a-z_]+\.py)(?![\w.])", path.read_text())
    assert [
        each for each in named if find_named_path(each) is None and not (path.parent / each).exists()
    ] == []


def test_the_program_names_pages_that_exist() -> None:
    sources = [*ROOT.glob("ssbench/**/*.py"), *ROOT.glob("bench/*.py"), *ROOT.glob("deploy/**/*.rst")]
    named = {name for path in sources for name in re.findall(r"doc/[\w-]+\.(?:rst|json)", path.read_text())}
    assert "doc/numbers.rst" in named
    assert sorted(name for name in named if not (ROOT / name).exists()) == []


def test_each_page_stands_in_the_index_once() -> None:
    listed = re.findall(r"^   ([a-z0-9-]+)$", INDEX.read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(path.stem for path in DOCUMENTS if path.parent.name == "doc")


def test_a_command_has_a_page_with_all_its_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "doc")
    import command_pages  # noqa: PLC0415

    pages = {page.file: page.text for page in command_pages.pages()}
    assert set(pages) == {
        "ssbench-master",
        "ssbench-worker",
        *(f"ssbench-master-{name}" for name in master.COMMANDS),
    }
    assert ".. option:: --fail-if CONDITION" in pages["ssbench-master-compare"]
    assert "Exit codes 0, 1, 2, 5, 6, 130: ssbench-master help exit-codes" in pages["ssbench-master-compare"]
    assert ".. option:: --zmq-host" in pages["ssbench-worker"]
    for text in pages.values():  # whose own directives are Sphinx's
        plain = re.sub(r"^\.\. program::.*\n", "", text, flags=re.MULTILINE)
        plain = re.sub(r"^\.\. option::.*\n", ".. note::\n", plain, flags=re.MULTILINE)
        docutils.core.publish_doctree(plain, settings_overrides={"halt_level": 2, "report_level": 5})


#: Where a command of a shell ends.
SHELL_OPERATORS = {"&&", "||", "|", "&", ";", ">", ">>", "<"}


def list_commands(page: Path) -> Iterator[list[str]]:
    """Yield the words of each call of ssbench-master in the examples of a page."""
    # The only variable whose value matters to a parser is a time.
    text = page.read_text("utf-8").replace("\\\n", " ").replace("$at", "12:00:00")
    for found in re.finditer(r"^ +(?:[\w-]+\$ )?ssbench-master (.*)$", text, re.MULTILINE):
        words = shlex.shlex(found[1], posix=True, punctuation_chars=True)
        words.whitespace_split = True
        yield [*takewhile(lambda word: word not in SHELL_OPERATORS, words)]


def test_commands_of_examples_can_be_called(capsys: pytest.CaptureFixture[str]) -> None:
    """Their options exist, and take the values."""
    commands = [each for page in DOCUMENTS for each in list_commands(page)]
    assert len(commands) > 100
    parsers = {words[0]: master.parser(words) for words in commands}
    refused = []
    for words in commands:
        try:
            parsers[words[0]].parse_args(words)
        except SystemExit as ended:
            refused += [(words, capsys.readouterr().err)] * (ended.code != 0)
    assert refused == []


def test_scenarios_of_examples_are_shipped() -> None:
    texts = [path.read_text("utf-8") for path in (*DOCUMENTS, INDEX)]
    named = {name for text in texts for name in re.findall(r"run-scenario -f (\w+)(?![\w.=])", text)}
    assert {"glance", "smoke"} <= named
    assert all(read_scenario(name).size_classes for name in named)


def test_reports_names_the_figures_of_the_table() -> None:
    table = (ROOT / "doc" / "reports.rst").read_text("utf-8").partition("\nThresholds\n")[2]
    named = {
        name
        for line in re.findall(r"^``.*``$", table, re.MULTILINE)
        for name in re.findall(r"``(\w[\w.]*)``", line)
    }
    assert {name for name in named if find_figure(name) is None} == set()
    assert set(FIGURES) - named == {"p95", "p99"}


def test_reports_says_what_each_counter_counts() -> None:
    # After a change: python tests/helpers/field_table.py
    assert kept_counters() == made_counters()


def test_the_list_of_modules_is_that_of_the_code() -> None:
    # After a change: python tests/helpers/module_list.py
    assert module_list.DOCUMENT.read_text("utf-8") == module_list.made_list()


def test_the_page_of_figures_has_a_row_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "doc")
    import figure_page  # noqa: PLC0415

    text = figure_page.text()
    docutils.core.publish_doctree(text, settings_overrides={"halt_level": 2, "report_level": 5})
    assert re.findall(r"\* - ``(\w+)``", text) == [*FIGURES]
    assert "   * - ``p99``\n     - p99 ms\n     - 1,000\n     - less\n     - size class\n     - yes\n" in text


def test_the_tutorial_has_a_picture_for_each_of_its_steps() -> None:
    text = (ROOT / "doc" / "tutorial.rst").read_text("utf-8")
    pictures = set(re.findall(r"^\.\. image:: (\S+)$", text, re.MULTILINE))
    assert {path.relative_to(ROOT / "doc").as_posix() for path in ROOT.glob("doc/tutorial/*")} == pictures
    steps = re.findall(r"^   :name: (\w+)$", text, re.MULTILINE)
    assert {Path(each).stem for each in pictures} == {*steps} - {"start", "clean"}


def test_the_programs_of_the_documentation_are_the_examples() -> None:
    text = (ROOT / "doc" / "api.rst").read_text()
    examples = [*(ROOT / "examples" / "python").glob("*.py")]
    assert examples
    for path in examples:
        assert textwrap.indent(path.read_text(), "   ") in text, path


def test_hooks_and_checks_of_a_forge_run_what_tox_and_the_readme_say() -> None:
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini", "utf-8")
    linters = tox["testenv:lint"]["commands"].split("\n")
    (local,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    hooks = [
        each["entry"].removeprefix(".tox/lint/bin/").removesuffix(" --force-exclude")
        for each in local["hooks"]
    ]
    assert hooks == [each.removesuffix(" .").replace(" --check", "") for each in linters if each]
    checks = yaml.safe_load((ROOT / ".github" / "workflows" / "checks.yml").read_text())
    commands = [each["run"] for each in checks["jobs"]["tox"]["steps"] if "run" in each]
    assert commands == [".ci/run"]
    program = (ROOT / ".ci" / "run").read_text().splitlines()[-1]
    assert f"``{program}``" in (ROOT / "README.rst").read_text("utf-8")
    pythons = {f"py{each.replace('.', '')}" for each in checks["jobs"]["tox"]["strategy"]["matrix"]["python"]}
    assert pythons | {"lint"} == {*re.split(r",\s*", tox["tox"]["env_list"])}
