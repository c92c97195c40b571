"""Authentication: which version is taken from what is given, and what comes of it."""

from __future__ import annotations

import contextlib
import json
import logging
import socket
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from asked_commands import ask_auth
from fault_server import FaultServer, Reply, Request, black_hole
from hypothesis import given
from hypothesis import strategies as st
from processes import ANEW, Program

from ssbench.base.errors import AuthenticationError, ClusterError, ExitCode, UsageError
from ssbench.cli import auth_options
from ssbench.cli.parser import Parser
from ssbench.store.contract import StoreAccess
from ssbench.store.credentials import Credentials, Session
from ssbench.store.swift import auth
from ssbench.store.swift.auth import authenticate_swift
from ssbench.store.swift.containers import find_containers

V1 = {"ST_AUTH": "http://swift:8080/auth/v1.0", "ST_USER": "a:u", "ST_KEY": "k"}
V3 = {
    "OS_AUTH_URL": "http://keystone:5000/v3",
    "OS_USERNAME": "u",
    "OS_PASSWORD": "p",
    "OS_PROJECT_NAME": "project",
    "OS_USER_DOMAIN_NAME": "Default",
    "OS_PROJECT_DOMAIN_NAME": "Default",
}
V2 = {
    "OS_AUTH_URL": "http://keystone:5000/v2.0",
    "OS_USERNAME": "u",
    "OS_PASSWORD": "p",
    "OS_TENANT_NAME": "project",
}
APPLICATION = {
    "OS_AUTH_URL": "http://keystone:5000",
    "OS_AUTH_TYPE": "v3applicationcredential",
    "OS_APPLICATION_CREDENTIAL_ID": "id",
    "OS_APPLICATION_CREDENTIAL_SECRET": "secret",
}


def credentials(environ: dict[str, str], *options: str) -> Credentials:
    return auth_options.make_credentials(ask_auth(*options), environ)


@pytest.mark.parametrize(
    "options",
    [
        ["-U", "a:u", "-K", "s3cret"],
        ["-U", "a:u", "-Ks3cret"],
        ["--user=a:u", "--key=s3cret"],
        ["--os_username=u", "--os_password", "s3cret", "--os-tenant-name", "p", "-V", "2.0"],
        ["--os-application-credential-id", "id", "--os-application-credential-secret=s3cret"],
        ["--os-auth-type", "v3token", "--os-auth-token", "s3cret"],
    ],
)
def test_secrets_of_the_command_line_cannot_be_seen_by_others(options: list[str]) -> None:
    """``ps`` showed the key of a run for as long as it took."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v3"
        words = ["cleanup-containers", "-A" if "a:u" in " ".join(options) else "--os-auth-url", url, *options]
        with Program("ssbench.cli.master", words, ANEW) as program:
            silent.settimeout(60)
            silent.accept()[0].close()  # it authenticates, and has read its options
            shown = Path(f"/proc/{program.process.pid}/cmdline").read_bytes()
    assert b"cleanup-containers" in shown
    assert b"xxxxxx" in shown
    assert b"s3cret" not in shown


# What is taken from options and variables


@pytest.mark.parametrize(
    ("environ", "options", "version"),
    [
        (V1, [], "1.0"),
        (V2, [], "2.0"),
        (V3, [], "3"),
        (V1 | V3, [], "1.0"),
        (V1 | V3, ["-V", "3"], "3"),
        (V1 | V3 | {"OS_IDENTITY_API_VERSION": "3"}, [], "3"),
        (V1 | V3 | {"OS_AUTH_VERSION": "3"}, [], "3"),
        (V3 | {"OS_IDENTITY_API_VERSION": "3"}, ["-A", "http://s/auth", "-U", "a:u", "-K", "k"], "1.0"),
        (V3 | {"OS_AUTH_URL": "http://keystone:5000"}, [], "3"),
        (V3 | {"OS_AUTH_URL": "http://keystone:5000/"}, [], "3"),
        (V2 | {"OS_AUTH_URL": "http://keystone:5000"}, ["--os-identity-api-version", "2"], "2.0"),
        (V2 | {"OS_USER_DOMAIN_ID": "default", "OS_PROJECT_DOMAIN_ID": "default"}, [], "3"),
        (V3 | {"OS_AUTH_URL": "http://keystone:5000/identity/v3/"}, [], "3"),
        (V2 | {"ST_AUTH_VERSION": "v2.0"}, [], "2.0"),
        (V2 | {"OS_TENANT_NAME": "", "OS_USERNAME": "project:u"}, [], "2.0"),
        (V3 | {"OS_AUTH_TYPE": "v1password"}, [], "1.0"),
        (V3 | {"OS_AUTH_TYPE": "v3password"}, [], "3"),
        (V2 | {"OS_AUTH_TYPE": "v2password"}, [], "2.0"),
        (V3 | {"OS_AUTH_TYPE": "password"}, [], "3"),
        (APPLICATION, [], "3"),
        (APPLICATION | {"OS_AUTH_TYPE": ""}, [], "3"),
        ({"OS_AUTH_URL": "http://k:5000/v3", "OS_AUTH_TOKEN": "t"}, [], "3"),
        (V1, ["-S", "http://s/v1/a"], "1.0"),
        (V1, ["-S", "http://s/v1/a", "-T", "t"], "none"),
        ({}, ["--storage-url", "http://s/v1/a", "--token", "t"], "none"),
        ({"OS_STORAGE_URL": "http://s/v1/a", "OS_AUTH_TOKEN": "t"} | V3, [], "none"),
    ],
)
def test_version(environ, options, version):
    assert credentials(environ, *options).version == version


def test_options_win_over_the_environment():
    options = ["-A", "http://other/auth", "-U", "other", "-K", "other key"]
    taken = credentials(V1, *options)
    assert (taken.auth_url, taken.user, taken.key) == ("http://other/auth", "other", "other key")


def test_every_keystone_option_by_option_and_by_variable_and_with_underscores():
    values = {
        "--os-auth-url": "http://k:5000/v3",
        "--os-username": "name",
        "--os-user-id": "uid",
        "--os-password": "pw",
        "--os-user-domain-id": "udi",
        "--os-user-domain-name": "udn",
        "--os-project-id": "pid",
        "--os-project-name": "pn",
        "--os-project-domain-id": "pdi",
        "--os-project-domain-name": "pdn",
        "--os-application-credential-id": "aci",
        "--os-application-credential-secret": "acs",
        "--os-auth-token": "token",
        "--os-region-name": "region",
        "--os-service-type": "type",
        "--os-endpoint-type": "internal",
    }
    expected = Credentials(
        version="3",
        auth_url="http://k:5000/v3",
        user="name",
        key="pw",
        user_id="uid",
        user_domain_id="udi",
        user_domain_name="udn",
        project_id="pid",
        project_name="pn",
        project_domain_id="pdi",
        project_domain_name="pdn",
        application_credential_id="aci",
        application_credential_secret="acs",
        token="token",
        region_name="region",
        service_type="type",
        endpoint_type="internal",
    )
    assert credentials({}, *[f"{name}={value}" for name, value in values.items()]) == expected
    spelled = {"--" + name[2:].replace("-", "_"): value for name, value in values.items()}
    assert credentials({}, *[f"{name}={value}" for name, value in spelled.items()]) == expected
    environ = {name[2:].upper().replace("-", "_"): value for name, value in values.items()}
    assert credentials(environ) == replace(expected, token=None), "there is a password"


def test_ids_need_no_domain():
    by_id = {"OS_AUTH_URL": "http://k/v3", "OS_USER_ID": "u", "OS_PROJECT_ID": "p", "OS_PASSWORD": "p"}
    assert credentials(by_id).version == "3"


def test_interface_is_another_word_for_endpoint_type():
    assert credentials(V3 | {"OS_INTERFACE": "internal"}).endpoint_type == "internal"
    assert credentials(V3, "--os-interface", "admin").endpoint_type == "admin"
    both = {"OS_INTERFACE": "internal", "OS_ENDPOINT_TYPE": "public"}
    assert credentials(V3 | both).endpoint_type == "public"
    assert credentials(V3 | both, "--os-interface", "admin").endpoint_type == "admin"


def test_tenant_is_another_word_for_project():
    taken = credentials(V2 | {"OS_TENANT_ID": "tid"})
    assert (taken.project_name, taken.project_id) == ("project", "tid")


def test_several_storage_urls():
    taken = credentials(
        {"OS_STORAGE_URL": "http://z/v1/a"}, "-S", "http://x/v1/a/", "-S", "http://y/v1/a", "-T", "t"
    )
    assert taken.storage_urls == ("http://x/v1/a", "http://y/v1/a")
    assert authenticate_swift(taken) == Session(("http://x/v1/a", "http://y/v1/a"), "t")


@pytest.mark.parametrize(("value", "insecure"), [("true", True), ("1", True), ("", False), ("no", False)])
def test_insecure(value, insecure):
    assert credentials(V1 | {"SWIFTCLIENT_INSECURE": value}).insecure is insecure
    assert credentials(V1, "--insecure").insecure


def test_files_are_looked_for_at_once(tmp_path):
    certificate = tmp_path / "ca.pem"
    certificate.write_text("PEM")
    for variable, name in (
        ("OS_CACERT", "ca_file"),
        ("OS_CERT", "certificate"),
        ("OS_KEY", "certificate_key"),
    ):
        assert getattr(credentials(V1 | {variable: str(certificate)}), name) == str(certificate)
        option = "--" + variable.lower().replace("_", "-")
        with pytest.raises(UsageError, match=f"^{option} /nowhere: No such file"):
            credentials(V1, option, "/nowhere")
    session = Session(("http://s/v1/a",), "t", ca_file=str(certificate))
    assert session.ca_certificates == "PEM"
    assert Session(("http://s/v1/a",)).ca_certificates is None
    certificate.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="expected CA certificates in PEM format"):
        _ = session.ca_certificates


@pytest.mark.parametrize(
    ("environ", "missing"),
    [
        (
            {"OS_REGION_NAME": "here"},
            [
                "version 1 lacks ST_AUTH, ST_USER, ST_KEY",
                "version 3 lacks OS_AUTH_URL, OS_USERNAME",
                "OS_PASSWORD",
                "(see 'ssbench-master help auth'); run-scenario --local-swift does without",
            ],
        ),
        (
            {},
            [
                "set ST_AUTH, ST_USER and ST_KEY, or OS_AUTH_URL and the other OS_ variables (see"
                " 'ssbench-master help auth'), or try run-scenario --local-swift, which starts a Swift on"
                " this machine",
            ],
        ),
        (V1 | {"ST_KEY": ""}, ["version 1 lacks ST_KEY (", "version 3 lacks OS_PASSWORD, OS_PROJECT_NAME"]),
        (V3 | {"OS_PASSWORD": ""}, ["version 3 lacks OS_PASSWORD;"]),
        (
            V3 | {"OS_USER_DOMAIN_NAME": "", "OS_PROJECT_DOMAIN_NAME": ""},
            [
                "version 3 lacks OS_USER_DOMAIN_NAME or OS_USER_DOMAIN_ID,"
                " OS_PROJECT_DOMAIN_NAME or OS_PROJECT_DOMAIN_ID;"
            ],
        ),
        (
            V3 | {"OS_USER_ID": "u", "OS_USER_DOMAIN_NAME": "", "OS_PROJECT_DOMAIN_NAME": ""},
            ["version 3 lacks OS_PROJECT_DOMAIN_NAME or OS_PROJECT_DOMAIN_ID;"],
        ),
        (V2 | {"OS_AUTH_URL": "http://keystone:5000"}, ["version 3 lacks OS_USER_DOMAIN_NAME or "]),
        (
            V2 | {"OS_TENANT_NAME": ""},
            ["version 2.0 lacks OS_PROJECT_NAME or OS_PROJECT_ID or "],
        ),
        (APPLICATION | {"OS_APPLICATION_CREDENTIAL_SECRET": ""}, ["lacks OS_APPLICATION_CREDENTIAL_SECRET;"]),
        ({"OS_AUTH_TYPE": "v3token", "OS_AUTH_URL": "http://k"}, ["version 3 lacks OS_AUTH_TOKEN;"]),
        (
            {"OS_AUTH_TYPE": "v1password", "OS_AUTH_URL": "http://k"},
            ["version 1 lacks ST_AUTH, ST_USER, ST_KEY"],
        ),
    ],
)
def test_what_is_missing_is_named(environ, missing):
    with pytest.raises(UsageError, match=r"^no way to authenticate: ") as caught:
        credentials(environ)
    assert caught.value.exit_code == ExitCode.USAGE
    for text in missing:
        assert text in str(caught.value)


@pytest.mark.parametrize(
    ("environ", "options", "message"),
    [
        ({}, ["-T", "t"], "-T/--token needs -S/--storage-url"),
        ({}, ["-S", "swift:8080", "-T", "t"], "storage URL 'swift:8080': expected http://HOST"),
        ({}, ["-S", "http://[x/v1/a", "-T", "t"], "storage URL"),
        ({}, ["-S", "http://s:99999/v1/a", "-T", "t"], "storage URL"),
        (V1 | {"ST_AUTH": "ftp://s/auth"}, [], "authentication URL 'ftp://s/auth': expected"),
        (V1 | {"ST_AUTH": "http://s/a b"}, [], "authentication URL"),
        (V1, ["-V", "4"], "authentication version '4': expected 1, 2 or 3"),
        (V3 | {"OS_AUTH_TYPE": "kerberos"}, [], "authentication type 'kerberos': expected one of password"),
    ],
)
def test_wrong_values(environ, options, message):
    with pytest.raises(UsageError, match=message):
        credentials(environ, *options)


@pytest.mark.parametrize("url", ["http://user:hidden@s/v1/a", "https://:hid/den@s:1/v1", "//hidden@s"])
@pytest.mark.parametrize("option", ["-S", "-A"])
def test_a_password_in_a_url_is_refused_without_showing_it(option, url):
    environ = V1 if option == "-A" else {"OS_AUTH_TOKEN": "t"}
    with pytest.raises(UsageError, match=r"URL '(https?:)?//\*\*\*@s") as caught:
        credentials(environ, option, url)
    assert "hid" not in str(caught.value)


def test_a_password_in_a_storage_url_of_the_authentication_is_refused(fault_server):
    url = "http://user:hidden@s/v1/a"
    fault_server.default = Reply(200, headers=(("X-Storage-Url", url), ("X-Auth-Token", "t")))
    with pytest.raises(UsageError, match=r"gave the storage URL 'http://\*\*\*@s/v1/a': .* is refused"):
        authenticate_swift(version_1(fault_server), timeout=5)


def test_control_characters_in_a_secret_are_refused_without_showing_it():
    for variable, environ in (
        ("ST_KEY", V1),
        ("OS_PASSWORD", V3),
        ("OS_AUTH_TOKEN", V3 | {"OS_PASSWORD": ""}),
    ):
        with pytest.raises(UsageError) as caught:
            credentials(environ | {variable: "hidden\nsecret"})
        assert "hidden" not in str(caught.value)


@given(
    st.dictionaries(
        st.sampled_from([*V1, *V2, *V3, *APPLICATION, "OS_AUTH_TOKEN", "ST_AUTH_VERSION", "OS_STORAGE_URL"]),
        st.text(max_size=20) | st.sampled_from(["http://h/v1", "http://h", "1", "3", "v3token"]),
    )
)
def test_any_environment_gives_credentials_or_one_line(environ):
    try:
        taken = credentials(environ)
    except UsageError as error:
        text = str(error)
    else:
        text = ""
        assert taken.auth_url or taken.version == "none"
    assert "\n" not in text


def test_help_shows_no_value_of_the_environment(monkeypatch, capsys):
    for name, value in (V1 | V3 | APPLICATION).items():
        monkeypatch.setenv(name, f"hidden-{value}")
    parser = Parser()
    auth_options.add_auth_arguments(parser)
    parser.print_help()
    text = capsys.readouterr().out + auth_options.format_auth_help()
    assert "hidden" not in text
    assert all(name in text for name in V1 | V2 | V3 | APPLICATION)


def test_records_do_not_show_secrets():
    shown = repr(
        Credentials(version="3", key="hidden1", token="hidden2", application_credential_secret="hidden3")
    ) + repr(Session(("http://s",), "hidden4"))
    assert "hidden" not in shown


# Version 1, by a real Swift


def test_version_1(swift):
    taken = {"ST_AUTH": swift.auth_url, "ST_USER": swift.user, "ST_KEY": swift.key}
    session = authenticate_swift(credentials(taken))
    assert session.storage_urls == (swift.storage_url,)
    assert session.storage_url == swift.storage_url
    assert session.token.startswith("AUTH_tk")
    overridden = authenticate_swift(credentials(taken, "-S", "http://cache:8080/v1/AUTH_test"))
    assert overridden == Session(("http://cache:8080/v1/AUTH_test",), session.token)


def test_a_wrong_key_is_refused_and_not_shown(swift, caplog):
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, "swiftclient")
    wrong = Credentials(version="1.0", auth_url=swift.auth_url, user=swift.user, key="hidden-key")
    with pytest.raises(AuthenticationError, match="authentication refused: HTTP 401 Unauthorized") as caught:
        authenticate_swift(wrong)
    assert caught.value.exit_code == ExitCode.CLUSTER
    assert "hidden" not in str(caught.value) + caplog.text


def test_debug_lines_show_neither_key_nor_token(swift, caplog):
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, "swiftclient")  # which our programs keep quiet
    session = authenticate_swift(
        Credentials(version="1.0", auth_url=swift.auth_url, user=swift.user, key=swift.key)
    )
    list(find_containers(StoreAccess(session), "none", None))
    assert "RESP HEADERS" in caplog.text
    assert swift.key not in caplog.text
    assert session.token[7:15] not in caplog.text


# What can go wrong on the way


def version_1(server: FaultServer) -> Credentials:
    return Credentials(version="1.0", auth_url=server.url, user="u", key="hidden")


@pytest.mark.parametrize(
    ("reply", "kind", "message"),
    [
        (Reply(403), AuthenticationError, "authentication refused: HTTP 403 Forbidden"),
        (
            Reply(503),
            AuthenticationError,
            "the answer was HTTP 503 Service Unavailable",
        ),
        (Reply(299), AuthenticationError, "authentication gave no storage URL"),
        (Reply(200, b"a page"), AuthenticationError, "authentication failed, the answer was HTTP 200"),
        (Reply(200, headers=(("X-Storage-Url", "http://s/v1/a"),)), AuthenticationError, "gave no token"),
        (
            Reply(200, headers=(("X-Storage-Url", "s/v1/a"), ("X-Auth-Token", "t"))),
            AuthenticationError,
            "gave 's/v1/a' for a storage URL",
        ),
        (Reply(reset=True), ClusterError, "cannot authenticate: reset"),
        (Reply(cut=0), ClusterError, "cannot authenticate: closed"),
        (Reply(raw=b"SSH-2.0-OpenSSH\r\n", cut=17), ClusterError, "cannot authenticate: bad response"),
        (Reply(stall=True), ClusterError, "cannot authenticate: read timeout"),
        (
            Reply(307, headers=(("Location", "http://127.0.0.1:1/auth"),)),
            AuthenticationError,
            "the answer was HTTP 307 Temporary Redirect, a redirect to 'http://127.0.0.1:1/auth'",
        ),
    ],
)
def test_answers_that_help_nobody(fault_server, reply, kind, message, monkeypatch):
    monkeypatch.setattr(auth, "_EXTRA_SECONDS", 60)  # however late the thread of the request has its turn
    fault_server.default = reply
    with pytest.raises(ClusterError, match=message) as caught:
        authenticate_swift(version_1(fault_server), timeout=0.5 if reply.stall else 60)
    assert type(caught.value) is kind
    assert str(caught.value).startswith(fault_server.url)
    assert "hidden" not in str(caught.value)
    assert len(fault_server.requests) <= 1


def test_nobody_there():
    with pytest.raises(ClusterError, match="connect refused"):
        authenticate_swift(Credentials(version="1.0", auth_url="http://127.0.0.1:1/auth", user="u", key="k"))
    with pytest.raises(ClusterError, match="name resolution"):
        authenticate_swift(
            Credentials(version="1.0", auth_url="http://nobody.invalid/auth", user="u", key="k")
        )


@pytest.mark.parametrize("version", ["1.0", "3"])
def test_no_answer_to_connecting(version, monkeypatch):
    monkeypatch.setattr(auth, "_EXTRA_SECONDS", 60)
    with black_hole() as port:
        url = f"http://127.0.0.1:{port}/v3"
        asked = Credentials(version=version, auth_url=url, user="u", key="k", project_id="p")
        with pytest.raises(ClusterError, match="connect timeout"):
            authenticate_swift(asked, timeout=0.3)


def test_an_answer_that_drips_is_given_up(fault_server, monkeypatch):
    # Less than the time-out of a read, which none of these reaches.
    monkeypatch.setattr(auth, "_EXTRA_SECONDS", -59.2)
    fault_server.default = Reply(200, b"x" * 10_000, pieces=1, pause=0.05)
    with pytest.raises(ClusterError, match=r"no answer within 0\.8 s"):
        authenticate_swift(version_1(fault_server), timeout=60)


# TLS


GRANTED = Reply(200, headers=(("X-Storage-Url", "https://s/v1/a"), ("X-Auth-Token", "t")))


def test_tls(certificates, tmp_path):
    trusted = tmp_path / "ca.pem"
    trusted.write_text(certificates.pem)
    with FaultServer(tls=certificates.server("127.0.0.1"), default=GRANTED) as server:
        url = {"ST_AUTH": server.url, "ST_USER": "u", "ST_KEY": "k"}
        with pytest.raises(ClusterError, match=r"TLS certificate: (self|unable)"):
            authenticate_swift(credentials(url))
        assert authenticate_swift(credentials(url, "--os-cacert", str(trusted))).token == "t"
        assert authenticate_swift(credentials(url, "--insecure")) == Session(
            ("https://s/v1/a",), "t", insecure=True
        )
    with FaultServer(tls=certificates.server("elsewhere.example"), default=GRANTED) as server:
        url["ST_AUTH"] = server.url
        with pytest.raises(ClusterError, match=r"TLS certificate: .*127\.0\.0\.1"):
            authenticate_swift(credentials(url, "--os-cacert", str(trusted)))


def test_tls_with_a_server_that_speaks_none():
    def answer(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):  # the listener is closed
            while True:  # whoever authenticates may try again
                connection, _ = listener.accept()
                with connection:
                    connection.recv(65536)
                    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        answering = threading.Thread(target=answer, args=(listener,))
        answering.start()
        url = f"https://127.0.0.1:{listener.getsockname()[1]}/auth/v1.0"
        with pytest.raises(ClusterError, match="TLS error"):
            authenticate_swift(credentials({"ST_AUTH": url, "ST_USER": "u", "ST_KEY": "k"}))
        listener.shutdown(socket.SHUT_RDWR)
        answering.join(10)


# Keystone, by stand-ins for its one call


EXPIRES = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%S.000000Z")


JSON = ("Content-Type", "application/json")


class StandInKeystone:
    """A stand-in for Keystone's calls that give a token, of version 2.0 and of version 3."""

    def __init__(self, server: FaultServer) -> None:
        self.server = server
        server.rule = self.answer

    @property
    def asked(self) -> dict:
        """What the last request asked for."""
        return json.loads(self.server.requests[-1].body)["auth"]

    def answer(self, request: Request) -> Reply:
        match request.method, request.target.removeprefix("/v1/AUTH_test"):
            case "GET", "/v3":  # which plugins that know of several versions ask for
                links = [{"rel": "self", "href": f"{self.server.url}/v3"}]
                version = {"id": "v3.14", "status": "stable", "links": links}
                return Reply(200, json.dumps({"version": version}).encode(), (JSON,))
            case "POST", "/v2.0/tokens":
                return Reply(200, json.dumps({"access": self.access_v2()}).encode(), (JSON,))
            case "POST", "/v3/auth/tokens":
                subject = ("X-Subject-Token", "token-of-3")
                return Reply(201, json.dumps({"token": self.token_v3()}).encode(), (JSON, subject))
        return Reply(404)

    def access_v2(self) -> dict:
        endpoint = {
            "region": "one",
            "publicURL": "http://two/v1/AUTH_p",
            "internalURL": "http://inner/v1/AUTH_p",
        }
        return {
            "token": {"id": "token-of-2", "expires": EXPIRES, "tenant": {"id": "p", "name": "project"}},
            "user": {"id": "u", "name": "u", "roles": []},
            "serviceCatalog": [{"type": "object-store", "name": "swift", "endpoints": [endpoint]}],
        }

    def token_v3(self) -> dict:
        endpoints = [
            {"id": f"{region}{kind}", "interface": kind, "region": region, "region_id": region, "url": url}
            for region in ("one", "other")
            for kind, url in (
                ("public", f"http://{region}/v1/AUTH_p"),
                ("internal", f"http://in-{region}/v1/AUTH_p"),
            )
        ]
        domain = {"id": "default", "name": "Default"}
        return {
            "methods": ["password"],
            "expires_at": EXPIRES,
            "issued_at": EXPIRES,
            "user": {"id": "u", "name": "u", "domain": domain},
            "project": {"id": "p", "name": "project", "domain": domain},
            "roles": [],
            "catalog": [{"type": "object-store", "id": "s", "name": "swift", "endpoints": endpoints}],
        }


@pytest.fixture
def keystone(fault_server) -> StandInKeystone:
    return StandInKeystone(fault_server)


def test_version_2_by_a_stand_in(fault_server, keystone, caplog):
    caplog.set_level(logging.DEBUG)
    environ = V2 | {"OS_AUTH_URL": f"{fault_server.url}/v2.0", "OS_PASSWORD": "hidden"}
    assert authenticate_swift(credentials(environ)) == Session(("http://two/v1/AUTH_p",), "token-of-2")
    by_name = {"tenantName": "project", "passwordCredentials": {"username": "u", "password": "hidden"}}
    assert keystone.asked == by_name
    inner = authenticate_swift(credentials(environ, "--os-endpoint-type", "internalURL"))
    assert inner.storage_url == "http://inner/v1/AUTH_p"
    both = {**environ, "OS_TENANT_NAME": "", "OS_USERNAME": "project:u", "OS_AUTH_URL": fault_server.url}
    authenticate_swift(credentials(both, "-V", "2"))
    assert keystone.asked == by_name
    authenticate_swift(credentials({**environ, "OS_USER_ID": "uid"}))
    assert keystone.asked["passwordCredentials"] == {"userId": "uid", "password": "hidden"}
    authenticate_swift(credentials(environ, "--os-auth-token", "hidden-token"))
    assert keystone.asked["token"] == {"id": "hidden-token"}
    assert "hidden" not in caplog.text
    assert "token-of-2" not in caplog.text


def test_version_3_by_a_stand_in(fault_server, keystone, caplog):
    caplog.set_level(logging.DEBUG)
    environ = V3 | {"OS_AUTH_URL": f"{fault_server.url}/", "OS_PASSWORD": "hidden"}
    assert authenticate_swift(credentials(environ)) == Session(("http://one/v1/AUTH_p",), "token-of-3")
    domain = {"name": "Default"}
    assert keystone.asked == {
        "identity": {
            "methods": ["password"],
            "password": {"user": {"name": "u", "password": "hidden", "domain": domain}},
        },
        "scope": {"project": {"name": "project", "domain": domain}},
    }
    other = authenticate_swift(
        credentials(environ, "--os-region-name", "other", "--os-endpoint-type", "internal")
    )
    assert other.storage_url == "http://in-other/v1/AUTH_p"
    authenticate_swift(credentials(APPLICATION | {"OS_AUTH_URL": fault_server.url}))
    assert keystone.asked["identity"]["application_credential"] == {"id": "id", "secret": "secret"}
    authenticate_swift(credentials(environ, "--os-auth-token", "hidden-token"))
    assert keystone.asked["identity"]["token"] == {"id": "hidden-token"}
    assert len(fault_server.requests) == 4, "one request for each authentication, and none to look around"
    assert "hidden" not in caplog.text
    assert "token-of-3" not in caplog.text


@pytest.fixture
def clouds(fault_server, keystone, tmp_path, monkeypatch) -> None:
    """A clouds.yaml with the stand-in Keystone as ``mine``."""
    pytest.importorskip("openstack")
    auth_ = {
        "auth_url": f"{fault_server.url}/v3",
        "username": "u",
        "password": "hidden",
        "project_name": "project",
        "user_domain_name": "Default",
        "project_domain_name": "Default",
    }
    cloud = {"auth": auth_, "regions": ["other", "one"], "interface": "internal", "verify": False}
    path = tmp_path / "clouds.yaml"
    path.write_text(json.dumps({"clouds": {"mine": cloud}}))
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(path))


def test_a_cloud_of_a_clouds_yaml(fault_server, keystone, clouds, caplog):
    caplog.set_level(logging.DEBUG)
    taken = credentials({"OS_CLOUD": "mine"} | V3)
    assert authenticate_swift(taken) == Session(("http://in-other/v1/AUTH_p",), "token-of-3", insecure=True)
    assert keystone.asked["identity"]["password"]["user"]["password"] == "hidden"
    authenticate_swift(taken)
    posts = [request for request in fault_server.requests if request.method == "POST"]
    assert len(posts) == 2, "a renewal gets a new token"
    one = credentials({}, "--os-cloud", "mine", "--os-region-name", "one", "--os-interface", "public")
    assert authenticate_swift(one).storage_url == "http://one/v1/AUTH_p"
    assert "hidden" not in caplog.text + repr(taken)
    # Options, and the variables of version 1, which ssbench of old had, come first.
    assert credentials({"OS_CLOUD": "mine"} | V1).version == "1.0"
    assert credentials({"OS_CLOUD": "mine"} | V3, "--os-auth-url", "http://k/v3").version == "3"
    assert credentials(V1, "--os-cloud", "mine").version == "cloud"


@pytest.mark.parametrize(
    ("no_proxy", "uses"),
    [
        ("", "to authenticate and to make and list containers"),
        ("auth.test", "to make and list containers"),
        (".test,other", None),
    ],
)
def test_a_proxy_that_workers_do_not_use_is_told(monkeypatch, caplog, no_proxy, uses):
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    taken = credentials({**V1, "ST_AUTH": "http://auth.test/v1.0"})
    session = Session(("http://store.test/v1/a",), "t")
    auth.warn_of_auth_route(taken, session)
    assert not caplog.records
    monkeypatch.setenv("http_proxy", "http://user:hidden@proxy:3128")
    monkeypatch.setenv("no_proxy", no_proxy)
    monkeypatch.delenv("NO_PROXY", raising=False)
    auth.warn_of_auth_route(taken, session)
    assert [f" is used {uses};" in record.getMessage() for record in caplog.records] == (
        [True] if uses else []
    )
    assert "hidden" not in caplog.text


def test_no_endpoint_in_the_catalog(fault_server, keystone):
    environ = V3 | {"OS_AUTH_URL": fault_server.url}
    with pytest.raises(AuthenticationError, match=r"no storage URL \(object-store, public, region nowhere\)"):
        authenticate_swift(credentials(environ, "--os-region-name", "nowhere"))
    with pytest.raises(AuthenticationError, match=r"no storage URL \(cheese, public\)"):
        authenticate_swift(credentials(environ, "--os-service-type", "cheese"))


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (Reply(401), "authentication refused: HTTP 401 Unauthorized"),
        (Reply(500), "the answer was HTTP 500 Internal Server Error"),
        (Reply(201, b"not json"), "bad response|not the answer"),
        (Reply(201, b"{}", (("Content-Type", "application/json"),)), "bad response|not the answer"),
        (
            Reply(201, b"[1]", (("Content-Type", "application/json"), ("X-Subject-Token", "t"))),
            "bad response",
        ),
        (Reply(reset=True), "cannot authenticate: reset"),
        (Reply(stall=True), "cannot authenticate: read timeout"),
    ],
)
@pytest.mark.parametrize("version", ["2.0", "3"])
def test_answers_of_keystone_that_help_nobody(fault_server, reply, message, version, monkeypatch):
    monkeypatch.setattr(auth, "_EXTRA_SECONDS", 60)
    fault_server.default = reply
    asked = Credentials(version=version, auth_url=fault_server.url, user="u", key="hidden", project_name="p")
    with pytest.raises(ClusterError, match=message) as caught:
        authenticate_swift(asked, timeout=0.5 if reply.stall else 60)
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize("version", [V1, V3])
def test_a_proxy_that_refuses_is_not_taken_for_the_service(monkeypatch, version):
    for name in ("http_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name.upper(), raising=False)
        monkeypatch.delenv(name, raising=False)
    variable = "ST_AUTH" if "ST_AUTH" in version else "OS_AUTH_URL"
    taken = credentials({**version, variable: "http://auth.test/v3"})
    with FaultServer() as proxy:
        proxy.default = Reply(403)
        monkeypatch.setenv("http_proxy", proxy.url.replace("http://", "http://user:hidden@"))
        with pytest.raises(
            AuthenticationError, match=r"refused: HTTP 403 Forbidden \(through the proxy"
        ) as caught:
            authenticate_swift(taken)
        assert "hidden" not in str(caught.value)
        monkeypatch.setenv("no_proxy", "auth.test")
        with pytest.raises(ClusterError) as missed:
            authenticate_swift(taken, timeout=1)
        assert "proxy" not in str(missed.value)
