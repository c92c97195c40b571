"""Logs as collectors, containers and compressors hand them over: genuine lines in other shapes."""

import bz2
import csv
import gzip
import io
import json
import lzma
import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from genuine_logs import DATA, attribute, write_stat_file
from golden_words import GoldenWords
from hypothesis import given
from hypothesis import strategies as st

from ssbench.base import interruption
from ssbench.cli import archives
from ssbench.cli.master import main
from ssbench.cluster import join
from ssbench.logs import log_files, transaction_ids
from ssbench.logs.envelopes import TRANS_ID
from ssbench.logs.prefixes import host_of_prefix
from ssbench.logs.swift_lines import BackendLine, CutLine, ErrorLine, parse_swift_line

#: Node, program, message.
Line = tuple[str, str, str]
CASES = DATA.parent / "cases"
TIME = "2026-11-21T22:41:33.659092+00:00"


@pytest.fixture
def stat_file(tmp_path: Path) -> Path:
    return write_stat_file(tmp_path / "run.stat.gz")


def lines() -> Iterator[Line]:
    for line in (DATA / "run-object.log").read_text().splitlines():
        node, _, _, program, message = line.split(" ", 4)
        yield node, program.rstrip(":"), message
    for line in (DATA / "run-proxy.log").read_text().splitlines():
        _, _, program, message = line.split(" ", 3)
        yield "p1", program.rstrip(":"), message


def journal(node: str, program: str, message: str) -> str:
    return json.dumps({"MESSAGE": message, "_HOSTNAME": node, "SYSLOG_IDENTIFIER": program, "_PID": "12"})


def filebeat(node: str, program: str, message: str) -> str:
    record = {
        "@timestamp": TIME,
        "host": {"name": node, "ip": ["10.0.0.1"]},
        "agent": {"hostname": "collector", "type": "filebeat"},
        "event": {"original": f"{program}: {message}"},
        "message": f"{program}: {message}",
    }
    return json.dumps(record)


def filebeat_of_a_log_server(node: str, program: str, message: str) -> str:
    return json.dumps({"host": {"name": "logs"}, "message": f"Nov 21 22:41:33 {node} {program}: {message}"})


def fluentd(node: str, program: str, message: str) -> str:
    return f"{TIME}\tsyslog.local0\t" + json.dumps({"host": node, "ident": program, "message": message})


def docker_in_filebeat(node: str, program: str, message: str) -> str:
    log = json.dumps({"log": f"{message}\n", "stream": "stdout", "time": TIME})
    return json.dumps({"message": log, "agent": {"hostname": node}}, separators=(",", ":"))


def elasticsearch(node: str, program: str, message: str) -> str:
    return json.dumps({"_index": "swift", "_source": {"message": message, "host": {"hostname": node}}})


def loki(node: str, program: str, message: str) -> str:
    return json.dumps({"labels": {"host": node, "job": "swift"}, "line": message, "timestamp": TIME})


@pytest.mark.parametrize(
    "shape",
    [
        journal,
        filebeat,
        filebeat_of_a_log_server,
        fluentd,
        docker_in_filebeat,
        elasticsearch,
        loki,
        lambda *words: journal(*words) + "\r",
        lambda node, program, message: f"Nov 21 22:41:33 {node} swift[123]: {program}: {message}",
        lambda node, program, message: f"Nov 21 22:41:33 {node} {program}[9]: INFO: {message}",
        lambda node, program, message: f"{TIME} {node} {program} - - -  {message}",
        lambda node, program, message: f"{TIME} stdout F Nov 21 22:41:33 {node} {program}: {message}",
        lambda node, program, message: f"{node}  | {program}: {message}",
        lambda node, program, message: f"[pod/{node}/{program}] {TIME} INFO {program}: {message}",
        lambda node, program, message: f'{TIME} {{host="{node}", job="swift"}} {message}',
        lambda node, program, message: f"{message} host={node} facility=local0",
    ],
)
def test_one_file_of_all_hosts(stat_file: Path, shape: Callable[[str, str, str], str]) -> None:
    log = stat_file.with_name("all.log")
    log.write_text("".join(f"{shape(*line)}\n" for line in lines()))
    _, found = attribute(stat_file, log)
    assert found["coverage"]["reasons"] == []
    assert (found["coverage"]["complete"], found["coverage"]["cut"]) == (40, 0)
    assert {row["name"] for row in found["devices"]} == {"d1 on o1", "d4 on o1", "d2 on o2", "d3 on o3"}
    assert [row["name"] for row in found["proxies"]] == ["p1"]


def kolla(node: str, program: str, message: str) -> str:
    return json.dumps({"Hostname": node, "programname": program, "Payload": message})


def otel(node: str, program: str, message: str) -> str:
    return json.dumps(
        {"body": message, "resource": {"attributes": {"host.name": node, "service.name": program}}}
    )


def otlp(node: str, program: str, message: str) -> str:
    attributes = [{"key": "host.name", "value": {"stringValue": node}}]
    return json.dumps({"resource": {"attributes": attributes}, "body": {"stringValue": message}})


def stern(node: str, program: str, message: str) -> str:
    return json.dumps({"message": message, "nodeName": "k1", "podName": node, "containerName": program})


def cloud(node: str, program: str, message: str) -> str:
    return json.dumps({"resource": {"labels": {"pod_name": node, "node_name": "k1"}}, "textPayload": message})


def docker_tag(node: str, program: str, message: str) -> str:
    return json.dumps({"log": f"{message}\n", "stream": "stdout", "attrs": {"tag": f"{node}"}, "time": TIME})


def fluent_bit(node: str, program: str, message: str) -> str:
    return f"[0] swift.{program}: [1795300893.659, " + json.dumps({"log": message, "hostname": node}) + "]"


def fluent_bit_of_ruby(node: str, program: str, message: str) -> str:
    record = json.dumps({"log": message, "hostname": node}, separators=(", ", "=>"))
    return f"[0] swift: [[1795300893.659, {{}}], {record}]"


@pytest.mark.parametrize(
    "shape",
    [
        kolla,
        otel,
        otlp,
        stern,
        cloud,
        docker_tag,
        fluent_bit,
        fluent_bit_of_ruby,
        lambda node, program, message: f"{node} {program} {message}",  # stern as text
        lambda node, program, message: f"Nov 21 22:41:33 {node} local0.info {program}: {message}",
        lambda node, program, message: f'{TIME} {{pod="{node}"}} {message}',  # logcli, with other labels
        lambda node, program, message: f'{TIME} {{app="swift", instance="{node}"}} {message}',
        lambda node, program, message: f"{node}: {message}",  # pdsh, clush, of lines that name no host
        lambda node, program, message: f"{node}: Nov 21 22:41:33 localhost {program}: {message}",
        lambda node, program, message: (
            f"logs: Nov 21 22:41:33 {node} {program}: {message}"
        ),  # of a log server
        lambda node, program, message: f"{node}: /var/log/swift/all.log:{message}",
        lambda node, program, message: f"{node}.log:17:{message}",  # grep -rn
        lambda node, program, message: f"{node}.log.1.gz:Nov 21 22:41:33 localhost {program}: {message}",
        lambda node, program, message: f"{node}: {message.replace(chr(34), '&quot;')}",
        lambda node, program, message: (
            f"Nov 21 22:41:33 {node} {program}: {message.replace(chr(34), '#042')}#000"
        ),
    ],
)
def test_one_file_of_all_hosts_as_tools_make_it(
    stat_file: Path, shape: Callable[[str, str, str], str]
) -> None:
    test_one_file_of_all_hosts(stat_file, shape)


def test_lines_of_grep_are_of_the_node_whose_folder_they_are_in(stat_file: Path) -> None:
    log = stat_file.with_name("all.log")
    log.write_text("".join(f"logs/{node}/object.log:17:{message}\n" for node, _, message in lines()))
    _, found = attribute(stat_file, log)
    assert found["coverage"]["complete"] == 40
    assert "d3 on logs/o3/object" in {row["name"] for row in found["devices"]}


def csv_of(node: str, program: str, message: str) -> str:
    text = message.replace('"', '""')
    return f'"{TIME}","{node}","{program}","{text}"'


def escaped(node: str, program: str, message: str) -> str:
    text = message.replace('"', '\\"')
    return f'"{TIME}","{node}","{program}","{text}"'


def coloured(node: str, program: str, message: str) -> str:
    return f"\x1b[32mNov 21 22:41:33\x1b[0m {node} \x1b[1;36m{program}:\x1b[0m \x1b[0m{message}\x1b[0m"


@pytest.mark.parametrize("shape", [csv_of, escaped, coloured])
def test_lines_that_went_through_a_spreadsheet_or_a_terminal(
    stat_file: Path, shape: Callable[[str, str, str], str]
) -> None:
    test_one_file_of_all_hosts(stat_file, shape)


def export(every: list[Line]) -> str:
    return "".join(
        f"__CURSOR=s=1;i={place}\n__REALTIME_TIMESTAMP=1795300893{place:06d}\nPRIORITY=6\n_HOSTNAME={node}\n"
        f"SYSLOG_IDENTIFIER={program}\nMESSAGE={message}\n_PID=12\n\n"
        for place, (node, program, message) in enumerate(every)
    )


def loki_answer(every: list[Line]) -> str:
    nodes = dict.fromkeys(node for node, _, _ in every)
    streams = [
        {
            "stream": {"host": node, "job": "swift"},
            "values": [["1795300893000000000", message] for host, _, message in every if host == node],
        }
        for node in nodes
    ]
    return json.dumps({"status": "success", "data": {"resultType": "streams", "result": streams}})


def elasticsearch_answer(every: list[Line]) -> str:
    hits = [json.loads(elasticsearch(*each)) for each in every]
    return json.dumps({"took": 3, "hits": {"total": len(hits), "hits": hits}}, indent=2)


def list_of_records(every: list[Line]) -> str:
    return json.dumps([json.loads(journal(*each)) for each in every])


def by_blocks(every: list[Line], begin: str) -> str:
    nodes = dict.fromkeys(node for node, _, _ in every)
    return "".join(
        begin.format(node) + "".join(f"{message}\n" for host, _, message in every if host == node)
        for node in nodes
    )


def ansible(every: list[Line]) -> str:
    return by_blocks(every, "{} | CHANGED | rc=0 >>\n")


def dshbak(every: list[Line]) -> str:
    return by_blocks(every, "----------------\n{}\n----------------\n")


def tail(every: list[Line]) -> str:
    return by_blocks(every, "==> {}.log <==\n")


def journal_pretty(every: list[Line]) -> str:
    return "".join(json.dumps(json.loads(journal(*each)), indent="\t") + "\n" for each in every)


def journal_bytes(every: list[Line]) -> str:
    """What journald writes where a message has what is no text."""
    return "".join(
        json.dumps(json.loads(journal(*each)) | {"MESSAGE": [*each[2].encode()]}) + "\n" for each in every
    )


def table(every: list[Line], delimiter: str, header: list[str], *words: str) -> str:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter)
    if header:
        writer.writerow(header)
    writer.writerows([TIME, *words, node, program, message] for node, program, message in every)
    return out.getvalue()


def table_with_words(every: list[Line]) -> str:
    return table(every, ",", [], "RegionOne", "rack")


def table_of_kibana(every: list[Line]) -> str:
    return table(every, ",", ["@timestamp", "tier", "host.name", "program", "message"], "storage")


def table_by_semicolons(every: list[Line]) -> str:
    return table(every, ";", [])


def table_by_tabs(every: list[Line]) -> str:
    return table(every, "\t", [])


@pytest.mark.parametrize(
    "shape",
    [
        export,
        loki_answer,
        elasticsearch_answer,
        list_of_records,
        ansible,
        dshbak,
        tail,
        journal_pretty,
        journal_bytes,
        table_with_words,
        table_of_kibana,
        table_by_semicolons,
        table_by_tabs,
    ],
)
def test_files_of_which_an_entry_is_no_line(stat_file: Path, shape: Callable[[list[Line]], str]) -> None:
    log = stat_file.with_name("all.log")
    log.write_text(shape([*lines()]))
    _, found = attribute(stat_file, log)
    assert (found["coverage"]["complete"], found["coverage"]["cut"]) == (40, 0)
    assert {row["name"] for row in found["devices"]} == {"d1 on o1", "d4 on o1", "d2 on o2", "d3 on o3"}
    assert [row["name"] for row in found["proxies"]] == ["p1"]


@pytest.mark.parametrize("coding", ["utf-16", "utf-8-sig"])
def test_files_in_other_codes(stat_file: Path, coding: str) -> None:
    log = stat_file.with_name("all.log")
    log.write_text("".join(f"{node}: {message}\r\n" for node, _, message in lines()), encoding=coding)
    _, found = attribute(stat_file, log)
    assert (found["coverage"]["complete"], found["coverage"]["cut"]) == (40, 0)


@pytest.mark.parametrize("name", ["42-pdsh", "44-heka"])
def test_files_that_people_sent(stat_file: Path, name: str) -> None:
    _, found = attribute(stat_file, CASES / name / "all.log")
    assert (found["coverage"]["complete"], found["coverage"]["reasons"]) == (40, [])
    assert {row["name"] for row in found["devices"]} == {"d1 on o1", "d4 on o1", "d1 on o2", "d1 on o3"}
    assert [row["name"] for row in found["proxies"]] == ["p1"]


def test_lines_that_a_terminal_cut(
    stat_file: Path, capfd: pytest.CaptureFixture[str], golden_words: GoldenWords
) -> None:
    log = CASES / "48-cut-at-200" / "all.log"
    assert attribute(stat_file, log)[0] == 2
    says = " ".join(capfd.readouterr().err.split())
    golden_words(says)
    golden_words(says)
    assert "log_msg_template" not in says
    # With the proxies' whole lines the storage servers' are missed, for the right reason.
    _, found = attribute(stat_file, DATA / "run-proxy.log", log)
    (reason,) = (each for each in found["coverage"]["reasons"] if "cut" in each)
    assert "cut at 200 characters" in reason


def test_a_folder_is_read_though_one_of_its_files_cannot_be(
    stat_file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "proxy.log").write_bytes((DATA / "run-proxy.log").read_bytes())
    (folder / "object.log").write_bytes((DATA / "run-object.log").read_bytes())
    (folder / "object.log.1.lz4").write_bytes(b"\x04\x22\x4d\x18" + b"x" * 100)
    _, found = attribute(stat_file, folder)
    assert found["coverage"]["complete"] == 40
    says = " ".join(capfd.readouterr().err.split())
    assert "object.log.1.lz4: left out: compressed by lz4" in says
    assert any("1 file could not be read" in each for each in found["coverage"]["reasons"])


def test_a_document_that_is_none_is_read_as_lines(stat_file: Path) -> None:
    log = stat_file.with_name("all.log")
    log.write_text(f"[{{\n{''.join(f'{journal(*each)}{chr(10)}' for each in lines())}")
    _, found = attribute(stat_file, log)
    assert found["coverage"]["complete"] == 40


def by_node(folder: Path, shape: Callable[[str], str], path: str) -> list[Path]:
    """Write a file for each node at a path that names it."""
    texts: dict[Path, str] = {}
    for node, program, message in lines():
        file = folder / path.format(node=node, program=program)
        texts[file] = texts.get(file, "") + f"{shape(message)}\n"
    for file, text in texts.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return list(texts)


def docker(message: str) -> str:
    return json.dumps({"log": f"{message}\n", "stream": "stdout", "time": TIME})


@pytest.mark.parametrize(
    ("shape", "path", "node"),
    [
        (lambda text: f"Nov 21 22:41:33 localhost object-server: {text}", "{node}.log", "o3"),
        (docker, "containers/{node}/{node}-json.log", "o3-json"),
        (
            lambda text: f"{TIME} stdout F {text}",
            "pods/swift_{node}/{program}/0.log",
            "swift_o3/object-server/0",
        ),
        (lambda text: f"{TIME} stdout F object-server: {text}", "{node}.log", "o3"),
    ],
)
def test_a_file_of_each_container(
    stat_file: Path, tmp_path: Path, shape: Callable[[str], str], path: str, node: str
) -> None:
    _, found = attribute(stat_file, *by_node(tmp_path, shape, path))
    assert found["coverage"]["complete"] == 40
    assert f"d3 on {node}" in {row["name"] for row in found["devices"]}
    assert len({row["name"].partition(" on ")[2] for row in found["devices"]}) == 3


def zstd(data: bytes) -> bytes:
    module = pytest.importorskip("zstandard")
    return bytes(module.compress(data))


@pytest.mark.parametrize("compress", [gzip.compress, lambda data: bz2.compress(data, 1), lzma.compress, zstd])
def test_compressed_logs(stat_file: Path, tmp_path: Path, compress: Callable[[bytes], bytes]) -> None:
    plain = (DATA / "run-object.log").read_bytes()
    middle = plain.index(b"\n", len(plain) // 2) + 1
    log = tmp_path / "object.log.1"
    log.write_bytes(compress(plain[:middle]) + compress(plain[middle:]))
    _, found = attribute(stat_file, DATA / "run-proxy.log", log)
    assert found["coverage"]["complete"] == 40
    # What precedes damage counts, and the damage is named.
    log.write_bytes(compress(plain * 20)[:-20])
    _, found = attribute(stat_file, DATA / "run-proxy.log", log)
    assert found["coverage"]["lines_of_run"] > 40


def test_damage_of_a_compressed_log_is_told(
    stat_file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], golden_words: GoldenWords
) -> None:
    log = tmp_path / "object.log.xz"
    data = lzma.compress((DATA / "run-object.log").read_bytes() * 40)
    for damaged in (data[:-20], data[:-300] + b"x" * 300):
        log.write_bytes(damaged)
        main(["attribute", "-s", str(stat_file), "--swift-logs", str(DATA / "run-proxy.log"), str(log)])
        golden_words(capfd.readouterr().err)


@pytest.mark.parametrize(
    "begin",
    [
        b"PK\x03\x04",
        b"\x04\x22\x4d\x18",
    ],
)
def test_other_compression_is_named(
    stat_file: Path, begin: bytes, capfd: pytest.CaptureFixture[str], golden_words: GoldenWords
) -> None:
    log = stat_file.with_name("object.log.1")
    log.write_bytes(begin + b"x" * 100)
    assert attribute(stat_file, log)[0] == 2
    golden_words(" ".join(capfd.readouterr().err.split()))


def test_no_device_is_named_in_lines_of_several_nodes(stat_file: Path, golden_words: GoldenWords) -> None:
    # d1 is slow on one node only, and the lines name no node.
    log = stat_file.with_name("all.log")
    log.write_text(
        "".join(
            re.sub(r'"(GET|PUT) /d\d/', r'"\1 /sda/' if node != "o3" else r'"\1 /sdb/', f"{message}\n")
            for node, _, message in lines()
        )
    )
    _, found = attribute(stat_file, log)
    assert found["merged"] == ["all"]
    golden_words(found["answer"][0])
    assert [each for each in found["findings"] if each["kind"] == "slow"] == []


def test_nodes_that_are_merged_are_told(stat_file: Path, golden_words: GoldenWords) -> None:
    log = stat_file.with_name("storage.log")
    # The devices of all nodes have the same names, and no line names its node.
    text = "".join(f"{message}\n" for _, program, message in lines() if program == "object-server")
    log.write_text(re.sub(r'"(GET|PUT) /d\d/', r'"\1 /sda/', text))
    _, found = attribute(stat_file, DATA / "run-proxy.log", log)
    (reason,) = (each for each in found["coverage"]["reasons"] if "several nodes" in each)
    golden_words(reason)


@pytest.mark.parametrize("mask", [lambda tx: "tx" + "X" * 32, lambda tx: tx[:26], lambda tx: tx[:15]])
def test_ids_that_are_not_whole_are_told(
    stat_file: Path, mask: Callable[[str], str], capfd: pytest.CaptureFixture[str]
) -> None:
    log = stat_file.with_name("object.log")
    text = re.sub(
        TRANS_ID.pattern.decode(), lambda match: mask(match[0]), (DATA / "run-object.log").read_text()
    )
    log.write_text(text)
    assert attribute(stat_file, log)[0] == 2
    assert "was it cut off or masked?" in " ".join(capfd.readouterr().err.split())
    _, found = attribute(stat_file, DATA / "run-proxy.log", log)
    assert any(str(log) in each and "masked?" in each for each in found["coverage"]["reasons"])


TEMPLATE = '{{"id": "{transaction_id}", "time": {request_time}, "by": "{source}", "{{": "{path.anonymized}"}}'


@pytest.mark.parametrize("shape", [str, docker])
def test_a_template_with_braces(stat_file: Path, shape: Callable[[str], str]) -> None:
    log = stat_file.with_name("proxy.log")
    texts = []
    for _, program, message in lines():
        if program == "proxy-server":
            words = message.split()
            texts.append(
                f'{{"id": "{words[13]}", "time": {words[15]}, "by": "{words[16]}", "{{": "{{MD5}}x"}}'
            )
    log.write_text("".join(f"{shape(text)}\n" for text in texts))
    _, found = attribute(stat_file, DATA / "run-object.log", log, "--log-format", TEMPLATE)
    assert (found["coverage"]["with_proxy"], found["coverage"]["complete"]) == (40, 40)


@pytest.mark.parametrize(
    "template",
    [
        "{transaction_id} {request_time}",
        "{source} {request_time}",
        "{transaction_id.anonymized} {request_time} {source}",
        "{transaction_id",
    ],
)
def test_a_wrong_template_is_one_sentence(
    stat_file: Path, template: str, capfd: pytest.CaptureFixture[str], golden_words: GoldenWords
) -> None:
    with pytest.raises(SystemExit) as caught:
        attribute(stat_file, DATA / "run-proxy.log", "--log-format", template)
    assert caught.value.code == 2
    golden_words(" ".join(capfd.readouterr().err.split()))


def test_a_template_that_does_not_fit(
    stat_file: Path, capfd: pytest.CaptureFixture[str], golden_words: GoldenWords
) -> None:
    options = ("--log-format", "{transaction_id}|{request_time}|{source}")
    assert attribute(stat_file, DATA / "run-proxy.log", *options)[0] == 2
    golden_words(" ".join(capfd.readouterr().err.split()))


def test_processes_read_as_one_does(stat_file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    logs = by_node(tmp_path / "logs", str, "{node}.log")
    _, alone = attribute(stat_file, *logs)
    monkeypatch.setattr(join, "_MIN_PARALLEL_BYTES", 0)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    _, together = attribute(stat_file, *logs)
    assert alone == together
    assert alone["coverage"]["complete"] == 40


@pytest.mark.parametrize("least", [0, join._MIN_PARALLEL_BYTES], ids=["processes", "one process"])
def test_a_signal_that_is_held_ends_the_reading(
    least: int, stat_file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As that of an envelope, which reports its runs then."""
    logs = by_node(tmp_path / "logs", str, "{node}.log")
    monkeypatch.setattr(join, "_MIN_PARALLEL_BYTES", least)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    with archives.open_stat_file(stat_file) as results, interruption.hold_signals():
        made = join.LogJoin(results, None, None, None)
        signal.raise_signal(signal.SIGINT)
        try:
            with pytest.raises(KeyboardInterrupt):
                made.read(log_files.find_log_files([*map(str, logs)]))
        finally:
            interruption.forget_signals()


@given(st.lists(st.from_regex(TRANS_ID.pattern.decode(), fullmatch=True), unique=True), st.data())
def test_ids_are_found_and_no_others(texts: list[str], data: Any) -> None:
    mine = data.draw(st.lists(st.sampled_from(texts), unique=True)) if texts else []
    found, rows = transaction_ids.ids_of_column([None, "none", *mine])
    assert rows.tolist() == list(range(2, 2 + len(mine)))
    table = transaction_ids.TransactionIds.of(transaction_ids.number_ids(found), rows.astype("u4"))
    chunk = "".join(f"x {text} y\n" for text in texts).encode()
    starts = [match.start() for match in TRANS_ID.finditer(chunk)]
    places = table.find(transaction_ids.gather_ids(chunk, np.array(starts, "i8"))).tolist()
    assert places == [mine.index(text) + 2 if text in mine else -1 for text in texts]


@given(st.lists(st.binary(max_size=20)))
def test_any_prefix_has_a_host_or_none(words: list[bytes]) -> None:
    assert isinstance(host_of_prefix(words), bytes)


@given(
    st.recursive(
        st.none() | st.text() | st.integers(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_any_record_is_read(record: Any) -> None:
    line = json.dumps({"message": "tx7d04489d656c49118d1c6-006b021e1d", "more": record}).encode()
    assert parse_swift_line(line) is None or isinstance(
        parse_swift_line(line), CutLine | BackendLine | ErrorLine
    )


def test_a_file_is_read_by_lines_however_it_is_cut_into_pieces(
    stat_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, whole = attribute(stat_file, DATA / "run-proxy.log", DATA / "run-object.log")
    monkeypatch.setattr(log_files, "_CHUNK_BYTES", 700)
    _, pieces = attribute(stat_file, DATA / "run-proxy.log", DATA / "run-object.log")
    assert whole == pieces
