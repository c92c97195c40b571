"""Making buckets, against a server that answers as a store of many accounts does."""

from __future__ import annotations

import pytest
from fault_server import FaultServer, Reply
from golden_words import GoldenWords

from ssbench.base.errors import ClusterError
from ssbench.store.contract import StoreAccess
from ssbench.store.credentials import Session
from ssbench.store.s3.signing import AccessKey
from ssbench.store.s3.store import S3Store


@pytest.mark.parametrize("replies", [[Reply(403)], [Reply(404), Reply(409)]])
def test_a_bucket_of_somebody_else_is_a_reason_to_choose_another_name(
    replies: list[Reply], golden_words: GoldenWords
) -> None:
    """It cannot be listed, or cannot be made."""
    with FaultServer() as server:
        server.script(*replies)
        token = AccessKey(access="me", secret="hidden", region="here", session="").pack()
        with golden_words.raises(ClusterError):
            S3Store().prepare(
                StoreAccess(Session((f"s3+{server.url.removesuffix('/v1/AUTH_test')}",), token), (5.0, 10.0)),
                ["first"],
                None,
                1,
                lambda: None,
                check=lambda: None,
                headers={},
            )
