"""The files that the servers of an embedded Swift read, without any server."""

from __future__ import annotations

import configparser
import json
from pathlib import Path
from typing import Any

import pytest

from ssbench.base.errors import UsageError
from ssbench.local_swift.configuration import (
    LISTINGS_SERVER,
    Layout,
    Policy,
    SwiftConfiguration,
    make_tempauth_options,
)


def make(directory: Path, layout: Layout, *policies: str, **options: Any) -> SwiftConfiguration:
    """Write all files of such a Swift; ports count from 7000 in the order of its applications."""
    parsed = [Policy.parse(each) for each in policies or ("gold",)]
    layout = layout.resolved(parsed)
    apps = [*layout.proxy_names, "account", "container", *layout.object_names]
    made = SwiftConfiguration(
        directory=directory,
        proxy_ip="0.0.0.0",
        storage_ip="127.0.0.1",
        policies=parsed,
        layout=layout,
        ports={app: 7000 + number for number, app in enumerate(apps)},
        authentication=make_tempauth_options(60),
        **options,
    )
    made.write()
    return made


def read(directory: Path, name: str) -> dict[str, dict[str, str]]:
    parser = configparser.RawConfigParser(default_section="none of them")
    parser.optionxform = str
    assert parser.read(directory / "etc" / f"{name}.conf")
    return {section: dict(parser[section]) for section in parser.sections()}


def pipeline(directory: Path, name: str) -> list[str]:
    sections = read(directory, name)
    words = sections["pipeline:main"]["pipeline"].split()
    # Each of them is described.
    assert {f"filter:{word}" for word in words[:-1]} == {
        section for section in sections if section.startswith("filter:")
    }
    assert f"app:{words[-1]}" in sections
    return words


def test_each_server_has_its_address_and_its_devices(tmp_path: Path) -> None:
    made = make(tmp_path, Layout(object_servers=2, devices=3))
    found = {
        name: read(tmp_path, name)["DEFAULT"]
        for name in ("proxy", "account", "container", "object-1", "object-2")
    }
    assert [each["bind_port"] for each in found.values()] == ["7000", "7001", "7002", "7003", "7004"]
    assert [each["bind_ip"] for each in found.values()] == ["0.0.0.0", *["127.0.0.1"] * 4]
    assert "devices" not in found["proxy"]
    for name, owner in {"d1": "object-1", "d2": "object-2", "d3": "object-1"}.items():
        assert made.device(name) == Path(found[owner]["devices"]) / name
        for folder in (made.device(name), Path(found["account"]["devices"]) / name):
            assert (folder / ".ismount").exists()
    assert found["account"]["devices"] == found["container"]["devices"]
    assert json.loads(made.slow_file.read_text()) == []


def test_rings_have_the_replicas_of_their_policy_on_all_devices(tmp_path: Path) -> None:
    make(tmp_path, Layout(replicas=3, devices=4, object_servers=2), "gold", "slim:ec:2+1", "thin:ec:3+1")
    rings = json.loads((tmp_path / "etc" / "rings.json").read_text())
    assert {name: ring["replicas"] for name, ring in rings.items()} == {
        **dict.fromkeys(["account", "container", "object"], 3),
        "object-1": 3,
        "object-2": 4,
    }
    for name, ports in {"account": {7001}, "container": {7002}, "object-1": {7003, 7004}}.items():
        devices = rings[name]["devices"]
        assert [each["device"] for each in devices] == ["d1", "d2", "d3", "d4"]
        assert {each["port"] for each in devices} == ports
        assert {each["ip"] for each in devices} == {"127.0.0.1"}
    swift = read(tmp_path, "swift")
    assert [swift[f"storage-policy:{number}"]["name"] for number in range(3)] == ["gold", "slim", "thin"]
    assert [swift[f"storage-policy:{number}"]["default"] for number in range(3)] == ["yes", "no", "no"]
    assert "policy_type" not in swift["storage-policy:0"]
    assert swift["storage-policy:2"]["ec_num_data_fragments"] == "3"
    assert swift["storage-policy:2"]["ec_num_parity_fragments"] == "1"


def test_filters_stand_before_the_authentication_and_options_in_the_applications(tmp_path: Path) -> None:
    make(
        tmp_path,
        Layout(),
        filters={"mine": {"use": "egg:x#y"}},
        proxy_options={"node_timeout": "3"},
        object_options={"container_update_timeout": "1"},
    )
    words = pipeline(tmp_path, "proxy")
    assert words[words.index("mine") :][:3] == ["mine", "s3api", "tempauth"]
    assert words.index("tempauth") < words.index("copy")
    assert words[-1] == "proxy-server"
    proxy = read(tmp_path, "proxy")
    assert proxy["filter:mine"] == {"use": "egg:x#y"}
    assert proxy["filter:tempauth"]["token_life"] == "60"
    assert proxy["app:proxy-server"]["node_timeout"] == "3"
    backend = read(tmp_path, "object-1")
    assert backend["app:object-server"]["container_update_timeout"] == "1"
    assert backend["app:object-server"]["use"] == "egg:swift#object"


@pytest.mark.parametrize("logged", [True, False])
def test_access_logs(tmp_path: Path, logged: bool) -> None:
    make(tmp_path, Layout(access_logs=logged))
    assert pipeline(tmp_path, "proxy").count("proxy-logging") == (2 if logged else 0)
    for name in ("account", "container", "object-1"):
        sections = read(tmp_path, name)
        kind = name.removesuffix("-1")
        assert sections[f"app:{kind}-server"]["log_requests"] == str(logged).lower()
        assert sections["DEFAULT"]["log_level"] == ("INFO" if logged else "WARNING")


def test_only_objects_can_be_slow_and_each_server_by_its_name(tmp_path: Path) -> None:
    made = make(tmp_path, Layout(object_servers=2, proxies=2))
    for name in ("proxy-1", "proxy-2", "object-1", "object-2"):
        assert "faults" in pipeline(tmp_path, name)
        faults = read(tmp_path, name)["filter:faults"]
        assert (faults["server"], faults["path"]) == (name, str(made.slow_file))
    for name in ("account", "container"):
        assert pipeline(tmp_path, name)[:-1] == ["recon"]
    # The daemons that would write these do not run, and recon answers an error without them.
    for name in (LISTINGS_SERVER, "object-1", "object-2"):
        folder = tmp_path / "recon" / name
        assert {each.read_text() for each in folder.iterdir()} == {"{}"}
    assert read(tmp_path, "object-2")["filter:recon"]["recon_cache_path"] == str(tmp_path / "recon/object-2")


def test_several_proxies_share_a_cache_that_begins_empty(tmp_path: Path) -> None:
    make(tmp_path, Layout())
    assert "folder" not in read(tmp_path, "proxy")["filter:local_cache"]
    make(tmp_path, Layout(proxies=2))
    folders = {read(tmp_path, name)["filter:local_cache"]["folder"] for name in ("proxy-1", "proxy-2")}
    (folder,) = map(Path, folders)
    (folder / "token of an earlier Swift").touch()
    make(tmp_path, Layout(proxies=2))
    assert not [*folder.iterdir()]


def test_statsd_lines_have_the_name_of_the_process(tmp_path: Path) -> None:
    make(tmp_path, Layout(proxies=2), statsd_port=8125)
    for name in ("proxy-2", "account", "object-1"):
        default = read(tmp_path, name)["DEFAULT"]
        assert (default["log_statsd_port"], default["log_statsd_metric_prefix"]) == ("8125", name)


def test_objects_in_memory_are_another_application(tmp_path: Path) -> None:
    make(tmp_path, Layout(), objects_in_memory=True)
    assert read(tmp_path, "object-1")["app:object-server"]["use"] == "egg:swift#mem_object"
    assert read(tmp_path, "account")["app:account-server"]["use"] == "egg:swift#account"


def test_data_of_another_layout_are_not_served(tmp_path: Path) -> None:
    make(tmp_path, Layout(devices=3, object_servers=2))
    make(tmp_path, Layout(devices=3, object_servers=2, proxies=2))  # who serves is not where data are
    for other in (Layout(devices=4, object_servers=2), Layout(devices=3, replicas=2, object_servers=2)):
        with pytest.raises(UsageError, match="1 replicas and 3 devices of 2 object servers"):
            make(tmp_path, other)
