"""Settings and filters of the embedded Swift: what is read, where it goes, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from golden_words import GoldenWords
from said import WANTED_NAMES

from ssbench.base.errors import UsageError
from ssbench.local_swift import Layout, LocalSwift
from ssbench.local_swift.configuration import Policy, SwiftConfiguration, make_tempauth_options
from ssbench.local_swift.server_settings import (
    FILTERS,
    ServerSetting,
    SwiftConfig,
    find_unknown_keys,
    make_filters,
    read_swift_config,
    refuse_missing_filters,
)


def make_files(*settings: str, filters: tuple[str, ...] = (), **options: Any) -> dict[str, Any]:
    """Return the sections of all files of a Swift with two object servers."""
    layout = Layout(object_servers=2, devices=2, **options)
    return SwiftConfiguration(
        directory=Path("/nowhere"),
        proxy_ip="127.0.0.1",
        storage_ip="127.0.0.1",
        policies=[Policy.parse("gold")],
        layout=layout,
        ports={},
        authentication=make_tempauth_options(60),
        settings=[ServerSetting.parse(each) for each in settings],
        added_filters=make_filters(filters),
    ).make_files()


def pipeline(*filters: str, settings: tuple[str, ...] = (), **options: Any) -> list[str]:
    sections = make_files(*settings, filters=filters, **options)["proxy"]
    words: list[str] = sections["pipeline:main"]["pipeline"].split()
    assert {f"filter:{word}" for word in words[:-1]} == {each for each in sections if each[:7] == "filter:"}
    return words


def test_a_setting_is_in_its_section_of_its_files() -> None:
    made = make_files(
        "proxy-server:filter:slo:concurrency=2",
        "proxy-server:filter:slo:concurrency=8",
        "object-server.conf:app:splice=yes",
        "object-server:app:object-server:slow=0",
        "*:DEFAULT:client_timeout=30",
        "swift:swift-constraints:max_file_size=123",
    )
    assert made["proxy"]["filter:slo"]["concurrency"] == "8", "the later one replaces the earlier one"
    assert made["proxy"]["filter:slo"]["rate_limit_under_size"] == "0"
    for name in ("object-1", "object-2"):
        assert made[name]["app:object-server"]["splice"] == "yes"
        assert made[name]["app:object-server"]["slow"] == "0"
    assert "splice" not in made["container"]["app:container-server"]
    assert {sections["DEFAULT"]["client_timeout"] for name, sections in made.items() if name != "swift"} == {
        "30"
    }
    assert made["swift"]["swift-constraints"] == {"max_file_size": "123"}


def test_a_key_that_the_file_has_for_all_sections_is_set_as_paste_wants_it() -> None:
    """Without "set" the section's own value has no effect."""
    made = make_files(
        "proxy-server:app:log_level=DEBUG", "proxy-server:DEFAULT:x=1", "proxy-server:filter:slo:x=2"
    )
    assert made["proxy"]["app:proxy-server"]["set log_level"] == "DEBUG"
    assert made["proxy"]["filter:slo"]["set x"] == "2"
    assert "x" not in made["proxy"]["filter:slo"]


def test_a_value_may_have_any_characters() -> None:
    assert ServerSetting.parse("proxy-server:filter:tempurl:methods=GET HEAD=a:b #c").value == (
        "GET HEAD=a:b #c"
    )
    assert ServerSetting.parse("proxy-server:filter:tempurl:methods=").value == ""


@pytest.mark.parametrize(
    "text",
    [
        "slo:concurrency=8",
        "proxy-server:filter:slo:concurrency",
        "proxy-sever:app:x=1",
        "proxy-server:filter:slow:x=1",
        "object-server:object-replicator:x=1",
        "proxy-server:filter:faults:path=/x",
        "proxy-server:pipeline:main:pipeline=a b",
        "*:filter:slo:concurrency=1",
        "proxy-server:DEFAULT:bind_port=8080",
        "*:DEFAULT:workers=2",
        "proxy-server:filter:slo:use=egg:x#y",
        "object-server:DEFAULT:devices=/srv",
        "proxy-server:app:x=1\n[app:y]",
        "swift:swift-hash:swift_hash_path_suffix=x",
    ],
)
def test_what_cannot_be_set_is_refused_in_one_line(text: str, golden_words: GoldenWords) -> None:
    with pytest.raises(UsageError) as error:
        make_files(text)
    golden_words(str(error.value))
    assert "\n" not in str(error.value)


def test_a_swift_refuses_them_before_it_is_started() -> None:
    with pytest.raises(UsageError, match="has no section filter:no"):
        LocalSwift(swift_settings=["proxy-server:filter:no:x=1"])
    with pytest.raises(UsageError, match="did you mean ratelimit"):
        LocalSwift(swift_filters=["ratelimits"])


def test_a_filter_stands_where_the_documentation_of_swift_has_it() -> None:
    words = pipeline(*reversed(FILTERS), settings=SETTINGS_OF_ALL, access_logs=True)
    assert " ".join(words) == (
        "catch_errors gatekeeper healthcheck proxy-logging faults xprofile name_check crossdomain"
        " cname_lookup domain_remap cache etag-quoter list-endpoints listing_formats container_sync bulk"
        " tempurl s3api read_only ratelimit formpost s3token tempauth staticweb copy container-quotas"
        " account-quotas slo dlo versioned_writes symlink keymaster kms_keymaster kmip_keymaster encryption"
        " proxy-logging proxy-server"
    )


#: What only a user can know of the filters that need something else.
SETTINGS_OF_ALL = tuple(
    f"proxy-server:filter:{row.section}:{row.needs}=x" for row in FILTERS.values() if row.needs
)


@pytest.mark.parametrize("name", [name for name, row in FILTERS.items() if row.needs])
def test_what_a_filter_needs_of_the_user_is_said(name: str) -> None:
    row = FILTERS[name]
    with pytest.raises(UsageError) as error:
        pipeline(name)
    assert str(error.value) == (
        f"filter {row.section}: needs --swift-config proxy-server:filter:{row.section}:{row.needs}=VALUE"
    )


def test_encryption_brings_a_keymaster_unless_another_one_is_there() -> None:
    assert pipeline("encryption")[-4:-1] == ["symlink", "keymaster", "encryption"]
    assert pipeline("encryption", "keymaster").count("keymaster") == 1
    words = pipeline(
        "kms_keymaster",
        "encryption",
        settings=("proxy-server:filter:kms_keymaster:keymaster_config_path=/x",),
    )
    assert words[-3:-1] == ["kms_keymaster", "encryption"]
    sections = make_files(filters=("encryption",))["proxy"]
    assert len(sections["filter:keymaster"]["encryption_root_secret"]) == 44, "32 bytes in base64"


def test_filters_of_others_stand_before_the_authentication() -> None:
    words = pipeline("egg:mine#first", "paste:my.module:second", "ratelimit")
    place = words.index("tempauth")
    assert words[place - 3 : place] == ["first", "second", "ratelimit"]
    sections = make_files(filters=("egg:mine#first", "paste:my.module:second"))["proxy"]
    assert sections["filter:first"] == {"use": "egg:mine#first"}
    assert sections["filter:second"] == {"paste.filter_factory": "my.module:second"}


@pytest.mark.parametrize(
    "filters",
    [
        ("ratelimits",),
        ("paste:no_factory",),
        ("egg:mine:first",),
        ("slo",),
        ("egg:mine#slo",),
        ("keystoneauth",),
    ],
)
def test_filters_that_cannot_be(filters: tuple[str, ...], golden_words: GoldenWords) -> None:
    with golden_words.raises(UsageError):
        pipeline(*filters)


def test_a_filter_that_a_release_lacks_is_named() -> None:
    added = make_filters(["ratelimit", "etag-quoter", "egg:mine#first"])
    refuse_missing_filters(added, {"ratelimit", "etag_quoter"}, "2.38.3")
    with pytest.raises(UsageError, match=r"etag-quoter: Swift 2\.23\.0 has none of this name"):
        refuse_missing_filters(added, {"ratelimit"}, "2.23.0")


def test_keys_that_swift_would_ignore_are_found(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "code.py").write_text(
        "conf.get('node_timeout'); conf_limits(conf, 'container_ratelimit_'); x = \"user_%s\"\n"
        "key.startswith('root_secret_of'); conf.get('client')"
    )
    known = ["app:node_timeout", "app:container_ratelimit_100", "app:user_x", "app:root_secret_of_2"]
    others = ["filter:mine:nod_timeout"]
    wrong = ["app:nod_timeout", "DEFAULT:client_timeout", "filter:ratelimit:container_rate_limit_0"]
    settings = [ServerSetting.parse(f"proxy-server:{each}=1") for each in (*known, *others, *wrong)]
    found = find_unknown_keys(settings, tmp_path)
    assert [each.place.removeprefix("proxy-server:") for each in found] == wrong


def test_a_file_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "swift.yaml"
    path.write_text(
        "filters: [encryption, egg:mine#first]\n"
        "policies: [slim:ec:2+1]\n"
        "replicas: 3\n"
        "release: 2.37.4\n"
        "proxy-server:\n"
        "  filter:slo: {concurrency: 8}\n"
        "  app: {object_chunk_size: 65536}\n"
        "'*':\n"
        "  DEFAULT: {eventlet_debug: yes}\n"
    )
    assert read_swift_config(path) == SwiftConfig(
        (
            "proxy-server:filter:slo:concurrency=8",
            "proxy-server:app:object_chunk_size=65536",
            "*:DEFAULT:eventlet_debug=yes",
        ),
        ("encryption", "egg:mine#first"),
        "2.37.4",
        ("slim:ec:2+1",),
        3,
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "No such file or directory"),
        ("a: [", "line 1: is not YAML: "),
        ("[]", "expected filters: "),
        ("filters: x", f"filters: {WANTED_NAMES}"),
        ("policies: gold", f"policies: {WANTED_NAMES}"),
        ("replicas: 0", "replicas: expected 1 to 9"),
        ("release: [2.37.4]", "release: expected a version"),
        ("proxy-server: x", "proxy-server: expected filters: "),
        ("polices: [gold]", "by file and section, KEY: VALUE; did you mean policies?"),
        ("proxy-server: {app: x}", "proxy-server: app: expected filters: "),
        ("proxy-server: {app: {x: [1]}}", "proxy-server: app: x: expected a value"),
        ("proxy: {app: {x: 1}}", "proxy:app:x: expected one of proxy-server, "),
        ("[" * 100_000, "is not YAML"),
    ],
)
def test_files_that_say_something_else(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "swift.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UsageError) as error:
        read_swift_config(path)
    assert str(error.value).startswith(str(path))
    assert message in str(error.value)
    assert "\n" not in str(error.value)
