"""Files of output: which are overwritten, and which cannot be written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from golden_words import GoldenWords
from known_reports import TABLE
from known_results import write_known

from ssbench.base.errors import UsageError
from ssbench.cli.master import main
from ssbench.cli.output_file import check_output


@pytest.fixture
def known(tmp_path: Path) -> Path:
    return write_known(tmp_path / "known.stat.gz")


def last_error(capsys: pytest.CaptureFixture[str]) -> str:
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("ERROR:")]
    return line.removeprefix("ERROR:")


OUTPUTS = [["report-scenario", "-f"], ["report-scenario", "-f", "-", "-r"], ["export", "-o"]]


@pytest.mark.parametrize("command", OUTPUTS)
def test_an_output_that_exists_is_overwritten_only_with_force(
    known: Path,
    tmp_path: Path,
    command: list[str],
    capsys: pytest.CaptureFixture[str],
    golden_words: GoldenWords,
) -> None:
    mine = tmp_path / "my.yaml"
    mine.write_text("mine")
    arguments = [*command, str(mine), "-s", str(known)]
    assert main(arguments) == 2
    golden_words(last_error(capsys))
    assert mine.read_text() == "mine"
    link = tmp_path / "link"
    link.symlink_to(mine)
    assert main([*command, str(link), "-s", str(known), "--force"]) == 0
    assert link.is_symlink()
    assert mine.read_text() not in {"mine", ""}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["known.stat.gz", "link", "my.yaml"]


@pytest.mark.parametrize("command", OUTPUTS)
@pytest.mark.parametrize(
    "name",
    [
        "/tmp",
        "x" * 300,
        "\ud800",
        "/nonexistent/x",
    ],
)
def test_an_output_that_cannot_be(
    known: Path, command: list[str], name: str, capsys: pytest.CaptureFixture[str], golden_words: GoldenWords
) -> None:
    assert main([*command, name, "-s", str(known)]) == 2
    golden_words(last_error(capsys))


def test_two_outputs_need_two_files(
    known: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], golden_words: GoldenWords
) -> None:
    out = str(tmp_path / "out")
    assert main(["report-scenario", "-s", str(known), "-f", out, "-r", out]) == 2
    golden_words(last_error(capsys))


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        (["-f", "out.txt"], ["out.1.txt", "out.2.txt"]),
        (["--csv", "-f", "out"], ["out.1", "out.2"]),
        (["-f", "-", "-r", "out.csv"], ["out.1.csv", "out.2.csv"]),
    ],
)
def test_an_earlier_report_is_kept_under_another_name(
    known: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, options: list[str], kept: list[str]
) -> None:
    """ssbench 0.3.9 overwrote it, so that its scripts give the same name each time."""
    monkeypatch.chdir(tmp_path)
    names = [*kept, options[-1]]
    for name, percentile in zip(names, ("50", "90", "99"), strict=True):
        arguments = ["report-scenario", "-s", str(known), "--pctile", percentile]
        assert main([*arguments, *options]) == 0
        assert main([*arguments, *options[:-1], f"expected-{name}"]) == 0
    for name in names:
        assert Path(name).read_text() == Path(f"expected-{name}").read_text()
    assert len({*tmp_path.iterdir()}) == 1 + 2 * len(names)


@pytest.mark.parametrize("option", ["--html=", "--json=", "--ci=md="])
def test_a_report_of_an_option_of_today_is_overwritten_only_with_force(
    known: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    mine = tmp_path / "out"
    assert main(["report-scenario", "-s", str(known), "-f", str(mine)]) == 0
    before = mine.read_text()
    assert main(["report-scenario", "-s", str(known), f"{option}{mine}"]) == 2
    assert "exists already" in last_error(capsys)
    assert mine.read_text() == before


def test_a_pipe_takes_a_report_when_somebody_reads_it(
    known: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert main(["report-scenario", "-s", str(known), "-f", str(pipe)]) == 2
    assert last_error(capsys).startswith(f"{pipe}: cannot be written: ")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert main(["report-scenario", "-s", str(known), "-f", str(pipe)]) == 0
        assert os.read(reader, 65536).decode() == TABLE
    finally:
        os.close(reader)


#: Commands that take their time before they write, each with an option of an output.
LONG_COMMANDS = [
    ["run-scenario", "-f", "very_small", "--noop", "--json"],
    ["run-scenario", "-f", "very_small", "--noop", "--html"],
    ["run-scenario", "-f", "very_small", "--noop", "--ci", "xml="],
    ["run-scenario", "-f", "very_small", "--noop", "--ci", "md="],
    ["run-scenario", "-f", "very_small", "--noop", "--repeat", "3", "--html"],
    ["run-scenario", "-f", "very_small", "--noop", "-r", "1", "--sweep", "users=1..4", "--html"],
    ["noise", "-f", "very_small", "--noop", "-r", "1", "--html"],
    ["suite", "quick", "--noop", "--html"],
    ["suite", "quick", "--noop", "--json"],
    ["compare", "KNOWN", "KNOWN", "--html"],
    ["attribute", "-s", "KNOWN", "--swift-logs", "KNOWN", "--html"],
    ["export", "-s", "KNOWN", "-o"],
    ["merge", "KNOWN", "KNOWN", "-o"],
    ["kill-workers", "--json"],
    ["cleanup-containers", "-S", "http://127.0.0.1:1/v1/AUTH_a", "-T", "t", "--json"],
    ["local-swift", "--env-file"],
]


@pytest.mark.parametrize("command", LONG_COMMANDS, ids=" ".join)
def test_a_folder_that_takes_no_file_is_known_before_anything_is_done(
    known: Path,
    tmp_path: Path,
    command: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A report was lost for it after its run. In /proc nobody can make a file, whoever runs the tests."""
    monkeypatch.chdir(tmp_path)
    words = [str(known) if word == "KNOWN" else word for word in command]
    if words[-1].endswith("="):
        words[-1:] = [f"{words[-1]}/proc/report"]
    else:
        words += ["/proc/report"]
    assert main(words) == 2
    said = last_error(capsys)
    assert said.startswith("/proc/report")
    assert "cannot be written: " in said
    assert [path.name for path in tmp_path.iterdir()] == [known.name], "no run was made"


def test_looking_whether_a_file_can_be_made_leaves_none(tmp_path: Path) -> None:
    check_output(tmp_path / "report", force=False)
    assert list(tmp_path.iterdir()) == []
    tmp_path.chmod(0o500)
    try:
        if os.access(tmp_path, os.W_OK):
            pytest.skip("this user may write everywhere")
        with pytest.raises(UsageError, match="report: cannot be written: Permission denied"):
            check_output(tmp_path / "report", force=False)
    finally:
        tmp_path.chmod(0o700)
