"""What a failed request of python-swiftclient and keystoneauth is called."""

from __future__ import annotations

import http.client
import json
import socket
import ssl

import pytest
import requests
import swiftclient
import urllib3.exceptions

from ssbench.store.http.master_requests import describe_client_error, status_of_error


def wrapped(inner: BaseException) -> requests.ConnectionError:
    """Return an exception as requests makes it of one of urllib3's, which has the cause in its reason."""
    retries = urllib3.exceptions.MaxRetryError(None, "/", inner)
    return requests.ConnectionError(retries)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (swiftclient.ClientException("no", http_status=503), "HTTP 503 Service Unavailable"),
        (swiftclient.ClientException("no", http_status=599), "HTTP 599"),
        (wrapped(ConnectionRefusedError(111, "Connection refused")), "connect refused"),
        (wrapped(socket.gaierror(-2, "Name or service not known")), "name resolution: Name or service"),
        (wrapped(ssl.SSLError(1, "wrong version number")), "TLS error: wrong version number"),
        (ssl.SSLCertVerificationError(), "TLS certificate"),
        (http.client.RemoteDisconnected("gone"), "closed"),
        (ConnectionResetError(104, "reset by peer"), "reset"),
        (http.client.BadStatusLine("x"), "bad response"),
        (json.JSONDecodeError("x", "y", 0), "bad response"),
        (requests.ReadTimeout(), "read timeout"),
        (requests.ConnectTimeout(), "connect timeout"),
        (OSError(113, "No route to host"), "connect failed: No route to host"),
        (ValueError("x"), "ValueError"),
    ],
)
def test_each_has_the_label_that_operations_have(error: BaseException, expected: str) -> None:
    assert describe_client_error(error).startswith(expected)


def test_what_is_more_specific_wins_wherever_it_is() -> None:
    outer = requests.ConnectionError("failed")
    outer.__cause__ = urllib3.exceptions.ProtocolError("aborted", ConnectionRefusedError(111, "refused"))
    assert describe_client_error(outer) == "connect refused"


def test_a_chain_that_leads_back_ends() -> None:
    one, two = ValueError("one"), ValueError("two")
    one.__context__, two.__context__ = two, one
    assert describe_client_error(one) == "ValueError"


def test_without_an_answer_there_is_no_status() -> None:
    assert status_of_error(swiftclient.ClientException("no", http_status=404)) == 404
    assert status_of_error(swiftclient.ClientException("no")) is None
    assert status_of_error(OSError()) is None
