"""What stands in for memcached in the embedded Swift."""

import pytest

from ssbench.local_swift._cache import Cache, CacheFolder


@pytest.fixture(params=["dictionary", "folder"])
def cache(request, tmp_path):
    return Cache({} if request.param == "dictionary" else CacheFolder(tmp_path))


def test_keeps_and_forgets(cache):
    cache.set("AUTH_/token/AUTH_tk1", (12.5, "a,b"), time=60)
    assert cache.get("AUTH_/token/AUTH_tk1") == [12.5, "a,b"]
    cache.set("short", 1, time=-1)
    assert cache.get("short") is None
    cache.set("for ever", {"a": None})
    cache.delete("AUTH_/token/AUTH_tk1")
    cache.delete("never was there")
    assert cache.get_multi(["AUTH_/token/AUTH_tk1", "for ever"], "") == [None, {"a": None}]
    assert [cache.incr("n"), cache.incr("n", 5), cache.decr("n", 9)] == [1, 6, 0]


def test_a_folder_is_shared(tmp_path):
    one, other = Cache(CacheFolder(tmp_path)), Cache(CacheFolder(tmp_path))
    assert other.get("container/AUTH_test/c") is None
    one.set("container/AUTH_test/c", {"status": 200}, time=60)
    assert other.get("container/AUTH_test/c") == {"status": 200}
    other.delete("container/AUTH_test/c")
    assert one.get("container/AUTH_test/c") is None
