"""Tokens of sides."""

from __future__ import annotations

from collections import Counter

from ssbench.run.tokens import TokenSource
from ssbench.store.credentials import Credentials, Session


def test_each_token_is_renewed_that_can_be(monkeypatch):
    asked = Counter()

    def authenticate(credentials, _timeout=10.0):
        asked[credentials.auth_url] += 1
        token = credentials.token or f"{credentials.auth_url}-{asked[credentials.auth_url]}"
        return Session((f"http://{credentials.auth_url}/v1/x",), token, credentials.insecure)

    monkeypatch.setattr("ssbench.store.swift.auth.authenticate_swift", authenticate)
    monkeypatch.setattr("ssbench.store.swift.auth.warn_of_auth_route", lambda *_: None)
    keys = [Credentials(version="1.0", auth_url="a"), Credentials(version="1.0", auth_url="b")]
    tokens = TokenSource(keys)
    assert [each.token for each in tokens.sessions] == ["a-1", "b-1"]
    assert tokens.renewing(1)().token == "b-2"
    assert [each._authenticate() for each in tokens.renewals()] == ["a-2", "b-3"]
    assert tokens.sessions[1].token == "b-3"
    given = Credentials(version="none", auth_url="c", token="mine")
    mixed = TokenSource([given, keys[1]])
    assert mixed.renewing(0) is None
    assert [each.possible for each in mixed.renewals()] == [False, True]
    assert mixed.renewals()[1]._authenticate() == "b-5"
