"""Options from files and variables: which value holds, and what is said of a wrong one."""

from __future__ import annotations

import os
from argparse import Namespace
from contextlib import suppress
from pathlib import Path

import pytest
from asked_commands import ask
from golden_words import GoldenWords
from said import NO_WHOLE_NUMBER
from settings_files import enter_empty_folder, write_own_settings, write_settings

from ssbench.base.errors import UsageError
from ssbench.cli import archives, master, options, settings, worker, worker_options
from ssbench.cli.parser import Parser


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, without settings; the user has none either."""
    return enter_empty_folder(tmp_path, monkeypatch)


def parse(*words: str) -> Namespace:
    """Parse a command line as ssbench-master does."""
    made = master.parser(words)
    master._use_settings(made, words)
    return made.parse_args(words)


def run_scenario(*words: str) -> Namespace:
    return parse("run-scenario", "-f", "small", *words)


def test_the_nearest_to_the_command_line_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_scenario().workers is None
    write_settings(
        "workers = 2\nretries = 2\nblock-size = 2\nseed = 2", tmp_path / "config/ssbench/ssbench.toml"
    )
    write_settings("workers = 3\nretries = 3\nblock_size = 3")
    monkeypatch.setenv("SSBENCH_WORKERS", "4")
    monkeypatch.setenv("SSBENCH_RETRIES", "4")
    found = run_scenario("--workers", "5")
    assert (found.workers, found.retries, found.block_size, found.seed) == (5, 4, 3, 2)
    write_settings("[run-scenario]\nblock-size = 9\n[cleanup-containers]\nconcurrency = 7")
    assert run_scenario().block_size == 9
    assert parse("cleanup-containers").concurrency == 7


def test_values_are_read_as_on_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    write_own_settings(
        'network-timeout = "1m30s"\nblock-size = "4K"\nrate = 2.5\nverify = true\npctile = [99, 50]\n'
        'fail-if = ["errors > 1%", "rate < 5"]\nprogress = "live"\n'
        'batch-size = "auto"\n'
        'ab = ["old=http://a/v1/x", "new=http://b/v1/x"]\nobserve = ["http://c", "http://d"]'
    )
    found = run_scenario()
    assert (found.network_timeout, found.block_size, found.rate, found.verify) == (90.0, 4096, 2.5, True)
    assert found.pctile == [99.0, 50.0]
    assert [each.text for each in found.fail_if] == ["errors > 1%", "rate < 5"]
    assert (found.progress, found.batch_size) == ("live", None)
    assert found.ab == ["old=http://a/v1/x", "new=http://b/v1/x"]
    assert found.observe == [["http://c"], ["http://d"]]
    for name, value in {"VERIFY": "no", "PCTILE": "90,95", "FAIL_IF": "rate < 9", "AB": "a=x b=y"}.items():
        monkeypatch.setenv(f"SSBENCH_{name}", value)
    found = run_scenario()
    assert (found.verify, found.pctile, found.ab) == (False, [90.0, 95.0], ["a=x", "b=y"])
    assert [each.text for each in found.fail_if] == ["rate < 9"]


def test_the_command_line_replaces_lists_and_can_turn_off_flags() -> None:
    write_settings('fail-if = ["rate < 5"]\npctile = [99]\nverify = true\nno-default-report = true')
    given = ("--fail-if", "rate < 1", "--fail-if", "rate < 2", "--pctile", "50", "--pctile", "60")
    found = run_scenario(*given, "--no-verify", "--default-report")
    assert [each.text for each in found.fail_if] == ["rate < 1", "rate < 2"]
    assert found.pctile == [50.0, 60.0]
    assert (found.verify, found.no_default_report) == (False, False)


def test_an_alternative_that_is_given_makes_the_set_one_void(monkeypatch: pytest.MonkeyPatch) -> None:
    write_own_settings('run-seconds = 60\nresults-dir = "/x"\n[run-scenario]\nsweep = "users=1,2"')
    assert run_scenario().run_seconds == 60
    found = run_scenario("-o", "5", "-s", "file", "--find", "errors <= 1%")
    assert (found.run_seconds, found.results_dir, found.sweep) == (None, None, None)
    monkeypatch.setenv("SSBENCH_OP_COUNT", "7")
    found = run_scenario()
    assert (found.run_seconds, found.op_count) == (None, 7)
    assert str(found.results_dir) == "/x"


def test_a_required_option_may_be_set() -> None:
    write_settings('[attribute]\nswift-logs = ["a.log", "b.log"]')
    assert parse("attribute", "last").swift_logs == ["a.log", "b.log"]


def test_a_key_that_is_set_opens_no_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    write_own_settings('zmq-key = "fleet.key"')
    found = ask("run-scenario", "--workers", "2", settings=True)
    assert found.zmq_key == Path("fleet.key")
    assert not options.has_zmq_options(found)
    assert options.has_zmq_options(ask("run-scenario", "--zmq-key", "x", settings=True))
    monkeypatch.setenv("SSBENCH_ZMQ_KEY", "other.key")
    assert options.choose_key_file(ask("run-scenario", settings=True)) == Path("other.key")


def test_pyproject_has_a_table_for_it() -> None:
    write_settings("[tool.other]\nx = 1", "pyproject.toml")
    assert run_scenario().workers is None
    write_settings("[tool.ssbench]\nretries = 1\n[tool.ssbench.run-scenario]\nworkers = 2", "pyproject.toml")
    found = run_scenario()
    assert (found.workers, found.retries) == (2, 1)
    write_settings("workers = 3")  # this goes first
    found = run_scenario()
    assert (found.workers, found.retries) == (3, 10)


def test_pyproject_with_something_else_than_a_table() -> None:
    write_settings("[tool]\n# no tool.ssbench\nssbench = 1", "pyproject.toml")
    with pytest.raises(UsageError, match=r"pyproject.toml: tool.ssbench is not a table"):
        run_scenario()
    write_settings("tool = 1  # no tool.ssbench", "pyproject.toml")
    assert run_scenario().workers is None


def test_a_file_that_cannot_be_looked_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As in the home of root, where ``runuser -u swift`` has left it in the environment."""
    monkeypatch.setenv("XDG_CONFIG_HOME", f"/{'x' * 300}")
    assert run_scenario().workers is None
    assert f"{'x' * 300}/ssbench/ssbench.toml is ignored: File name too long" in caplog.text


def test_a_variable_names_another_file_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_settings("workers = 2\nseed = 2")
    write_settings("workers = 9", tmp_path / "other.toml")
    monkeypatch.setenv(settings.CONFIG_VARIABLE, str(tmp_path / "other.toml"))
    found = run_scenario()
    assert (found.workers, found.seed) == (9, None)
    monkeypatch.setenv(settings.CONFIG_VARIABLE, "")
    assert run_scenario().workers is None


@pytest.mark.parametrize(
    "text",
    [
        "workrs = 1",
        "[run-scenario]\nusers = 1",
        "size = '4kB'",
        "think-time = 1",
        "max-errors = 1",
        "list-suites = true",
        "[run-scenario]\nworkrs = 1",
        "[run-scenario]\nnoise = 1",
        "[run-scenaro]\nworkers = 1",
        "workers = 0",
        "workers = [1]",
        "verify = 3",
        '[run-scenario]\nreport = "al"',
        'fail-if = ["x"]',
        'os-password = "secret"',
        "workers 1",
    ],
)
def test_what_is_wrong_is_one_line(
    text: str, capsys: pytest.CaptureFixture[str], golden_words: GoldenWords
) -> None:
    write_settings(text)
    assert master.main(["run-scenario", "-f", "small"]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("ssbench-master: error: ssbench.toml")
    golden_words(printed)
    assert printed.count("\n") == 1
    assert "secret" not in printed
    with pytest.raises(SystemExit):  # help is there all the same
        master.main(["run-scenario", "--help"])


def test_a_file_in_the_current_folder_moves_and_overwrites_nothing(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    golden_words: GoldenWords,
) -> None:
    mine = folder / "mine.txt"
    mine.write_text("mine")
    write_settings('[list]\njson = "mine.txt"\nforce = true\nnumber = 3')
    assert master.main(["list", "--results-dir", str(folder)]) == 2
    assert mine.read_text() == "mine"
    golden_words(capsys.readouterr().err)
    write_settings("force = true")  # for all sub-commands
    with pytest.raises(UsageError, match="cannot set force;"):
        run_scenario()
    (folder / "ssbench.toml").unlink()
    write_settings('[tool.ssbench.run-scenario]\nresolve = "a=10.0.0.1"', "pyproject.toml")
    with golden_words.raises(UsageError):
        run_scenario()
    monkeypatch.setenv(settings.CONFIG_VARIABLE, "pyproject.toml")  # which is to trust it
    assert run_scenario().resolve == "a=10.0.0.1"
    monkeypatch.delenv(settings.CONFIG_VARIABLE)
    (folder / "pyproject.toml").unlink()
    write_own_settings('force = true\nresolve = "a=10.0.0.2"')
    assert (run_scenario().force, run_scenario().resolve) == (True, "a=10.0.0.2")


#: What those of any file may not do: options by what they do.
OF_THE_USER = {
    "overwrites": ["force"],
    "writes": [
        "directory", "env-file", "ci", "html", "json", "output", "profile", "profile-count", "report-file",
        "results-dir", "rps-histogram", "stats-file", "trace",
    ],
    "goes elsewhere": [
        "ab", "metrics", "observe", "otlp", "resolve", "store", "versus", "zmq-host",
    ],
    "opens": [
        "bind-ip", "port", "zmq-bind-ip",
        "zmq-results-port", "zmq-work-port",
    ],
    "reads what is sent": ["existing"],
    "protects": ["zmq-key"],
    "deletes": ["account-base", "container-base", "in-use", "yes"],
    "says less": ["quiet"],
    "runs commands": ["allow", "swift-config"],
}  # fmt: skip


def test_a_file_of_others_sets_no_option_that_can_do_harm() -> None:
    """A new one is the user's alone until it is said that any file may set it."""
    every = {
        name
        for each in master.make_command_parsers().values()
        for name in settings.list_settable_options(each)
    }
    own = {name for names in OF_THE_USER.values() for name in names}
    assert not settings._OPTIONS_OF_ANY_FILE & own
    assert every >= settings._OPTIONS_OF_ANY_FILE | own


def test_a_file_of_others_names_no_program(
    monkeypatch: pytest.MonkeyPatch, golden_words: GoldenWords
) -> None:
    """It may turn a local Swift on, but not say which Python runs it."""
    write_settings("local-swift = true")
    assert run_scenario().local_swift is True
    for value in ('"2.37.4"', '"./python"', '"true"'):
        write_settings(f"local-swift = {value}")
        with golden_words.raises(UsageError):
            run_scenario()
    write_settings("")
    write_own_settings('local-swift = "2.37.4"')
    assert run_scenario().local_swift == "2.37.4"
    for text, value in (("2.36.4", "2.36.4"), ("1", True), ("no", False)):
        monkeypatch.setenv("SSBENCH_LOCAL_SWIFT", text)
        assert run_scenario().local_swift == value


def test_a_run_names_the_file_that_sets_its_options(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_settings("workers = 1\n[run-scenario]\nretries = 2\nlabel = 'x'")
    monkeypatch.setenv("SSBENCH_SEED", "1")
    assert master.main(["run-scenario", "-f", "small", "--pause", "1", "--label", "y"]) == 2
    said = capsys.readouterr().err
    assert "INFO:Settings of ssbench.toml: workers\n" in said
    assert "INFO:Settings of ssbench.toml [run-scenario]: retries\n" in said
    assert "SSBENCH_SEED" not in said
    assert master.main(["prepare", "none.yaml"]) == 2
    assert "INFO:Settings of ssbench.toml: workers\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 100_000,
        ".".join(["a"] * 30_000) + " = 1",
        "# " + "x" * 2_000_000,
    ],
)
def test_a_file_with_settings_costs_little(
    text: str, capsys: pytest.CaptureFixture[str], golden_words: GoldenWords
) -> None:
    write_settings(text)
    assert master.main(["list"]) == 2
    golden_words(capsys.readouterr().err)


def test_settings_of_a_pipe_or_a_device_are_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(folder / "pipe")
    for path in ("pipe", "/dev/zero"):
        monkeypatch.setenv(settings.CONFIG_VARIABLE, path)
        assert master.main(["list"]) == 2
        assert capsys.readouterr().err == f"ssbench-master: error: {path}: not a plain file\n"


@pytest.mark.parametrize(
    "words",
    [
        ["list", "--x\x1b[2Jy"],
        ["list", "x\x1b[2Jy"],
        ["list", "--number", "\x1b[2J"],
        ["\x1b[2J"],
        ["help", "\x9b2J"],
    ],
)
def test_nothing_of_a_command_line_controls_the_terminal(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with suppress(SystemExit):
        master.main(words)
    said = capsys.readouterr().err.removesuffix("\n")
    assert said
    assert said.isprintable()


def test_keys_of_a_file_do_not_control_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    write_settings('"\\u001b]0;owned\\u0007" = 1')
    assert master.main(["list"]) == 2
    assert worker.main([]) == 2
    said = capsys.readouterr().err
    assert "ssbench.toml: \ufffd]0;owned\ufffd is not an option" in said
    assert "\x1b" not in said


def test_a_wrong_or_mistyped_variable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SSBENCH_NUMBER", "x")
    assert master.main(["list"]) == 2
    said = f"ssbench-master: error: SSBENCH_NUMBER: 'x' {NO_WHOLE_NUMBER} of 1 or more\n"
    assert capsys.readouterr().err == said
    environ = {"SSBENCH_WORKRS": "2", "SSBENCH_SOMETHING_ELSE": "x", "SSBENCH_WORKERS": "2"}
    environ["SSBENCH_METRICS_PORT"] = "9102"
    assert settings.describe_mistyped(master.make_command_parsers, environ) == [
        "SSBENCH_METRICS_PORT is not known; write --metrics 9102 instead",
        "SSBENCH_WORKRS is not known; did you mean SSBENCH_WORKERS?",
    ]


def test_an_option_of_another_sub_command_is_none_of_this_one() -> None:
    write_settings('noise = "2%"')
    assert not hasattr(run_scenario(), "noise")
    assert parse("compare", "a", "--to", "b").noise == 0.02


def test_a_file_of_strangers_is_ignored(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, golden_words: GoldenWords
) -> None:
    write_settings("workers = 2")
    (folder / "ssbench.toml").chmod(0o666)
    assert run_scenario().workers is None
    golden_words(caplog.messages)
    monkeypatch.setenv(settings.CONFIG_VARIABLE, "ssbench.toml")
    assert run_scenario().workers == 2
    monkeypatch.delenv(settings.CONFIG_VARIABLE)
    (folder / "ssbench.toml").chmod(0o644)
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    assert (run_scenario().workers is None) is bool(user)


def test_an_endless_project_of_strangers_costs_nothing(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    project = folder / "pyproject.toml"
    project.write_text("[tool.ssbench]\nworkers = 2\n")
    os.truncate(project, 1 << 40)  # it takes no room on the disk
    project.chmod(0o666)
    assert run_scenario().workers is None
    assert "pyproject.toml is ignored" in caplog.text


def test_the_worker_has_a_table_too(monkeypatch: pytest.MonkeyPatch) -> None:
    write_own_settings('[worker]\nzmq-host = "master"\n')
    monkeypatch.setenv("SSBENCH_CONCURRENCY", "9")
    monkeypatch.setenv("SSBENCH_RETRIES", "3")  # has no effect there
    made = worker_options.parser()
    settings.use_settings("worker", made, master.make_command_parsers, [])
    found = made.parse_args(["1"])
    assert (found.zmq_host, found.concurrency, found.retries) == ("master", 9, None)


def test_config_shows_what_is_set_and_where(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], golden_words: GoldenWords
) -> None:
    assert master.main(["config"]) == 0
    golden_words(capsys.readouterr().out)
    write_own_settings('results-dir = "/x"')
    write_settings("[run-scenario]\nworkers = 2\nverify = true")
    monkeypatch.setenv("SSBENCH_RETRIES", "3")
    assert master.main(["config", "run-scenario"]) == 0
    lines = [line.split("#") for line in capsys.readouterr().out.splitlines() if "#" in line]
    assert {tuple(map(str.strip, line)) for line in lines} == {
        ('results-dir = "/x"', f"{os.environ['XDG_CONFIG_HOME']}/ssbench/ssbench.toml"),
        ("workers = 2", "ssbench.toml [run-scenario]"),
        ("verify = true", "ssbench.toml [run-scenario]"),
        ('retries = "3"', "SSBENCH_RETRIES"),
    }
    assert master.main(["config", "--all"]) == 0
    text = capsys.readouterr().out
    assert "[worker]" in text
    assert "default; SSBENCH_NETWORK_TIMEOUT" in text
    with pytest.raises(SystemExit):
        master.main(["config", "run-scenaro"])
    assert "did you mean run-scenario?" in capsys.readouterr().err


def test_every_option_but_those_of_authentication_can_be_set() -> None:
    for name_of_command, parser in master.make_command_parsers().items():
        assert isinstance(parser, Parser)
        for name, action in settings.list_settable_options(parser).items():
            assert action.option_strings, (name_of_command, name)
    names = settings.list_settable_options(master.make_command_parsers()["run-scenario"])
    assert {"workers", "stats-file", "no-default-report", "progress", "quiet"} <= names.keys()
    assert not {"help", "help-all", "os-password", "key", "auth-url"} & names.keys()


def test_to_that_ends_a_replay_names_no_runs_to_compare(
    monkeypatch: pytest.MonkeyPatch, golden_words: GoldenWords
) -> None:
    monkeypatch.setenv("SSBENCH_TO", "10:00")
    assert parse("compare", "a", "b").to == []
    assert parse("compare", "a", "--to", "b").to == ["b"]
    assert run_scenario().end == "10:00"
    write_own_settings('to = "11:00"')
    assert parse("compare", "a", "b").to == []
    write_own_settings('[compare]\nto = "last"')
    with golden_words.raises(UsageError):
        parse("compare", "a", "b")


def test_a_table_of_runs_ignores_what_is_set_for_comparisons(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSBENCH_FORMAT", "junit")
    known = str(Path(__file__).parents[2] / "data" / "version-1-known.stat.gz")
    assert master.main(["compare", known, known, known]) == 0
    assert "Known results" in capsys.readouterr().out
    assert master.main(["compare", known, known, known, "--format", "junit"]) == 2


def test_an_error_says_where_what_it_names_is_set(capsys: pytest.CaptureFixture[str]) -> None:
    write_settings("[run-scenario]\nrepeat = 3\nwarmup = 9")
    for words, name in (["--ci", "x.xml"], "repeat"), (["-r", "5", "--no-default-report"], "warmup"):
        assert master.main(["run-scenario", "-f", "small", "--noop", "--workers", "1", *words]) == 2
        said = f"(--{name} is set by ssbench.toml [run-scenario]; the command line, or SSBENCH_CONFIG= for"
        assert said in capsys.readouterr().err


def test_a_no_op_run_of_existing_objects_is_refused_wherever_it_is_set(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, golden_words: GoldenWords
) -> None:
    """It said that the variable is ignored, and then that a no-op run is not possible."""
    words = ["run-scenario", "-f", "small", "--existing", "c", "--workers", "1"]
    said = "--existing reads objects, and --noop sends no requests: leave out one of them"
    assert master.main([*words, "--noop"]) == 2
    assert f"ERROR:{said}\n" in capsys.readouterr().err
    monkeypatch.setenv("SSBENCH_NOOP", "1")
    assert master.main(words) == 2
    golden_words(capsys.readouterr().err)


def test_the_file_of_the_command_line_wins_over_one_that_is_set(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSBENCH_STATS_FILE", "set.stat.gz")
    for name in ("set", "mine"):
        (folder / f"{name}.stat.gz").touch()

    def choose(*words: str) -> Path:
        return archives.choose_stat_file(ask("report-scenario", *words, settings=True))

    assert choose() == Path("set.stat.gz")
    assert choose("mine.stat.gz") == Path("mine.stat.gz")
    with pytest.raises(UsageError, match="given twice"):
        choose("mine.stat.gz", "-s", "set.stat.gz")
