"""Credentials as records."""

import pytest

from ssbench import Credentials, SsbenchError


@pytest.mark.parametrize("version", ["1", "", "v3", None])
def test_an_unknown_version_is_refused_with_those_that_are_known(version):
    with pytest.raises(SsbenchError, match=r"expected one of none, 1\.0, 2\.0, 3, cloud") as caught:
        Credentials(version=version)
    assert repr(version) in str(caught.value)


def test_secrets_are_not_shown():
    shown = repr(Credentials(version="1.0", user="me", key="secret 1", token="secret 2"))
    assert "me" in shown
    assert "secret" not in shown
