"""Bodies of the bytes of files: what is read, sent, found by a check, and refused elsewhere."""

from __future__ import annotations

import hashlib
import itertools
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from fault_server import FaultServer
from golden_words import GoldenWords
from msgspec import structs
from sent_scenarios import make_sent

from ssbench.base.errors import ScenarioError, UsageError
from ssbench.document.elements import View
from ssbench.document.renderers import text
from ssbench.fleet.wire import RunParameters, pack_parameters, unpack_parameters
from ssbench.reports import scenario_outlook
from ssbench.reports.json import make_scenario_record
from ssbench.scenario import scenario_reading
from ssbench.scenario.model import make_owner, make_sent_scenario
from ssbench.scenario.structured_values import Body, BodyContent, BodyFiles, find_body_files, load_body_files
from ssbench.store.contract import StoreRequest
from ssbench.store.http.bodies import BodyVerifier, FileBodySource
from ssbench.store.http.client import ClientSettings
from ssbench.store.stores import make_store_client
from ssbench.worker.engine import make_engine

PARTS = [b"first file ", b"second, which is longer " * 400, b"\0" * 500, b"first file too"]
WHOLE = b"".join(PARTS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "photos"
    found.mkdir()
    for number, part in enumerate(PARTS):
        (found / f"{number}.bin").write_bytes(part)
    (found / ".hidden").write_bytes(b"no")
    (found / "empty").touch()
    (found / "sub").mkdir()
    return found


def write(folder: Path, body: str) -> str:
    file = folder.parent / "scenario.yaml"
    file.write_text(
        "name: files\nsizes: [{name: a, size: 1MB}]\ninitial_files: {a: 1}\nprofile: {create: 1}\n"
        f"operation_count: 1\nuser_count: 1\n{body}\n"
    )
    return str(file)


def body(first: bytes, payload: FileBodySource, offset: int, size: int) -> bytes:
    """Return the body that begins so, as it is sent."""
    while len(first) < size:
        first += (piece := bytes(payload.piece(offset, size - len(first))))
        offset = (offset + len(piece)) % payload.block_bytes
    return first[:size]


def from_file(number: int, size: int) -> bytes:
    """Return the bytes from the beginning of a file on."""
    begin = sum(map(len, PARTS[:number]))
    return (WHOLE * (2 + size // len(WHOLE)))[begin : begin + size]


def test_files_are_read_in_the_order_of_their_names(folder: Path) -> None:
    found = find_body_files(folder)
    assert (found.folder, found.count, found.size, found.others) == (str(folder), 4, len(WHOLE), 3)
    assert load_body_files(found) == BodyContent(WHOLE, (0, 11, 11 + 9600, 11 + 9600 + 500))


@pytest.mark.parametrize("size", [0, 1, 11, 300, 4096, 4097, 70_000, 3_000_000])
def test_bodies_are_the_bytes_of_one_file_after_the_other(folder: Path, size: int) -> None:
    payload = FileBodySource(load_body_files(find_body_files(folder)))
    seen = []
    for _ in range(8):
        first, offset, digest = payload.begin(size)
        sent = body(first, payload, offset, size)
        assert sent in [from_file(number, size) for number in range(4)]
        if digest is not None:
            rest = size - len(first)
            payload.add_to(digest, offset, rest)
            assert digest.hexdigest() == hashlib.md5(sent).hexdigest()
        seen.append(sent)
    # Each file has its turn.
    assert set(seen) == {from_file(number, size) for number in range(4)}
    assert seen[:4] == seen[4:]


@pytest.mark.parametrize("size", [5, 16, 17, 4000, 90_000])
def test_bodies_of_files_are_checked(folder: Path, size: int) -> None:
    writer = BodyVerifier(FileBodySource(load_body_files(find_body_files(folder))), 7)
    reader = BodyVerifier(FileBodySource(load_body_files(find_body_files(folder))), 7)
    files = set()
    for name in (b"c/%d" % number for number in range(40)):
        stamp, offset, _ = writer.begin(name, size)
        sent = body(stamp, writer.payload, offset, size)
        files.add(next((n for n in range(4) if sent[16:] == from_file(n, size)[: size - 16]), None))
        for change in (None, size - 1):
            data = bytearray(sent)
            if change is not None:
                data[change] ^= 1
            check = reader.check(name)
            for start, end in itertools.pairwise([0, *sorted({min(9, size), min(3000, size)}), size]):
                check.feed(bytes(data[start:end]))
            if change is None or change > 16 or change < 8:
                assert check.wrong == change or (check.wrong == 0 and change is not None and change < 8)
            for first in {0, 3, min(20, size - 1), size // 2}:
                part = reader.check_part(name, first)
                part.feed(bytes(data[first : first + 40]))
                part.feed(bytes(data[first + 40 :]))
                assert part.wrong is None or change is not None
                assert change is None or size < 4000 or part.wrong is not None
    # One byte does not tell them apart.
    assert size <= 17 or files == {0, 1, 2, 3}


def test_what_is_uploaded(fault_server: FaultServer, folder: Path) -> None:
    client = make_store_client(ClientSettings(scenario=make_sent(body=Body(0.0, find_body_files(folder)))))
    try:
        for size in (100, 200_000):
            put = StoreRequest(method="PUT", container="c", name="o", size=size, etag=True)
            assert client.perform(fault_server.url, put).cause is None
            got = fault_server.requests[-1]
            assert got.body in [from_file(number, size) for number in range(4)]
            assert got.headers["etag"] == hashlib.md5(got.body).hexdigest()
    finally:
        client.close()


def test_other_files_are_refused_in_one_line(folder: Path, golden_words: GoldenWords) -> None:
    there = find_body_files(folder)
    parameters = RunParameters(1, scenario=make_sent(body=Body(0.0, there)))
    assert unpack_parameters(pack_parameters(parameters)).scenario.body == Body(0.0, there)
    (folder / "0.bin").write_bytes(b"first fiLe ")
    load_body_files.cache_clear()
    with golden_words.raises(UsageError):
        load_body_files(there)
    gone = structs.replace(there, folder=str(folder / "gone"))
    with golden_words.raises(UsageError):
        load_body_files(gone)


def test_what_a_scenario_says(folder: Path, golden_words: GoldenWords) -> None:
    scenario = scenario_reading.read_scenario(write(folder, "body: {files: photos}"))
    assert scenario.body is not None
    assert scenario.body.files == find_body_files(folder)
    words = f"4 files of {folder} (10.1 kB, digest {find_body_files(folder).digest[:8]})"
    of_json: Any = make_scenario_record(scenario)
    assert of_json.body == words
    view = View(columns=300)
    said = " ".join(text.render(scenario_outlook.make_outlook_document(scenario, view), view).split())
    golden_words(said)
    # Objects of other contents are others, wherever the folder is.
    owner = make_owner(scenario, scenario.size_classes[0])
    moved = folder.rename(folder.parent / "moved")
    again = scenario_reading.read_scenario(write(moved, "body: {files: moved}"))
    assert make_owner(again, again.size_classes[0]) == owner
    (moved / "0.bin").write_bytes(b"others")
    other = scenario_reading.read_scenario(write(moved, "body: {files: moved}"))
    assert make_owner(other, other.size_classes[0]) != owner


@pytest.mark.parametrize(
    "given",
    [
        "nowhere",
        "photos/0.bin",
        "photos/sub",
        "7",
        "photos, zero: 1",
    ],
)
def test_faults_are_said_with_all_others(folder: Path, given: str, golden_words: GoldenWords) -> None:
    with golden_words.raises(ScenarioError):
        scenario_reading.read_scenario(write(folder, f"body: {{files: {given}}}\nmistake: 1"))


def test_bodies_are_only_of_files_of_the_scenario_and_of_folders_that_are_allowed(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A scenario of others could name /root/.ssh, and make the containers public."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    secret = elsewhere / "id_rsa"
    secret.write_bytes(b"secret")
    scenario = write(folder, f"body: {{files: {elsewhere}}}")
    with pytest.raises(ScenarioError, match=f"{elsewhere} is not in {folder.parent}, or hidden; --allow DIR"):
        scenario_reading.read_scenario(scenario)
    for allowed in (elsewhere, elsewhere.parent):
        assert scenario_reading.read_scenario(scenario, bodies=[allowed]).body is not None
    hidden = folder.parent / ".ssh"
    elsewhere.rename(hidden)
    with pytest.raises(ScenarioError, match=r"\.ssh is not in"):
        scenario_reading.read_scenario(write(folder, "body: {files: .ssh}"))
    (folder.parent / "link").symlink_to(hidden)
    for outside in ("link", "photos/../.ssh"):
        with pytest.raises(ScenarioError, match=r"\.ssh,? is not in"):
            scenario_reading.read_scenario(write(folder, f"body: {{files: {outside}}}"))
    (folder / "innocent").symlink_to(hidden / "id_rsa")
    with pytest.raises(ScenarioError, match=r"innocent, a link to .*id_rsa, is not in"):
        scenario_reading.read_scenario(write(folder, "body: {files: photos}"))
    (folder / "innocent").unlink()
    (folder / "twin").symlink_to(folder / "0.bin")  # which is in the folder
    assert scenario_reading.read_scenario(write(folder, "body: {files: photos}")).body is not None
    (folder.parent / "round").symlink_to("round")
    with pytest.raises(ScenarioError, match=r"round.*(leads to itself|symbolic links)"):
        scenario_reading.read_scenario(write(folder, "body: {files: round}"))


def test_a_worker_reads_only_folders_that_it_was_told_to(folder: Path, golden_words: GoldenWords) -> None:
    parameters = RunParameters(1, scenario=make_sent(body=Body(0.0, find_body_files(folder))))
    load_body_files.cache_clear()
    with golden_words.raises(UsageError):
        make_engine(parameters, 1, lambda *_: None)
    with pytest.raises(UsageError, match=r"photos is not in .*sub, or hidden"):
        make_engine(parameters, 1, lambda *_: None, bodies=[folder / "sub"])
    (folder / "3.bin").unlink()
    (folder / "3.bin").symlink_to("/etc/passwd")
    with pytest.raises(UsageError, match=r"3\.bin, a link to /etc/passwd, is not in"):
        make_engine(parameters, 1, lambda *_: None, bodies=[folder])
    (folder / "3.bin").unlink()
    (folder / "3.bin").write_bytes(PARTS[3])
    make_engine(parameters, 1, lambda *_: None, bodies=[folder.parent]).close()
    no_requests = structs.replace(parameters, noop=True)
    make_engine(no_requests, 1, lambda *_: None).close()


def test_a_worker_of_a_master_on_this_host_reads_what_that_has_allowed(folder: Path) -> None:
    """A scenario in ~/.local has bodies that no other folder would have."""
    hidden = folder.parent / ".local"
    hidden.mkdir()
    folder = folder.rename(hidden / folder.name)
    scenario = scenario_reading.read_scenario(write(folder, f"body: {{files: {folder.name}}}"))
    assert scenario.body is not None
    load_body_files.cache_clear()
    parameters = RunParameters(1, scenario=make_sent_scenario(scenario))
    with pytest.raises(UsageError, match="or hidden"):
        make_engine(parameters, 1, lambda *_: None, bodies=[hidden.parent])
    make_engine(parameters, 1, lambda *_: None, bodies=[Path("/")]).close()  # as Bench does


def test_too_many_bytes_are_not_read(folder: Path) -> None:
    with (folder / "huge").open("wb") as file:
        file.truncate(200_000_000)
    with pytest.raises(ValueError, match="expected at most 10,000 files of 100 MB in all, not 5 of 200 MB"):
        find_body_files(folder)


def test_the_example_in_the_documentation(folder: Path) -> None:
    doc = (Path(__file__).parents[3] / "doc" / "scenarios.rst").read_text("utf-8")
    example = doc.partition("\n``files``\n")[2].partition("folder: ``")[2].partition("``")[0]
    scenario = scenario_reading.read_scenario(write(folder, dedent(example)))
    assert scenario.body is not None
    assert isinstance(scenario.body.files, BodyFiles)
