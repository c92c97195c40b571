import pytest

from ssbench.base.errors import UsageError
from ssbench.local_swift import Layout
from ssbench.local_swift.configuration import Policy, SlowTarget


def test_the_devices_that_are_needed():
    assert Layout().resolved([Policy("gold")]).device_owners == {"d1": "object-1"}
    assert Layout(replicas=3, object_servers=2).resolved([Policy("gold")]).device_owners == {
        "d1": "object-1",
        "d2": "object-2",
        "d3": "object-1",
    }
    assert Layout().resolved([Policy.parse("slim:ec:4+2")]).devices == 6


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        (Layout(devices=2, replicas=3), "3 replicas need at least 3 devices, not 2"),
        (Layout(devices=1, object_servers=2), "2 object servers need at least 2 devices, not 1"),
        (Layout(devices=5), r"storage policy 'slim' \(4\+2\) needs at least 6 devices, not 5"),
    ],
)
def test_too_few_devices(layout, message):
    with pytest.raises(UsageError, match=message):
        layout.resolved([Policy("gold"), Policy("slim", 4, 2)])


@pytest.mark.parametrize("text", ["slim:ec:2", "slim:ec:0+1", "slim:raid:2+1", "two words", "slim:"])
def test_no_policy(text):
    with pytest.raises(UsageError, match="storage policy"):
        Policy.parse(text)


@pytest.mark.parametrize(
    ("text", "slow"),
    [
        ("d3:30ms:0.33", SlowTarget("d3", 0.03, 0.33)),
        ("d3:30ms:0.33:commit", SlowTarget("d3", 0.03, 0.33, "commit")),
        ("proxy-2:1.5s", SlowTarget("proxy-2", 1.5)),
    ],
)
def test_slow(text, slow):
    assert SlowTarget.parse(text) == slow


@pytest.mark.parametrize("text", ["d3", "d3:30", "d3:30ms:0", "d3:30ms:1.5", "d3:30ms:1:open:more", ":1s"])
def test_not_slow(text):
    with pytest.raises(UsageError, match="slow"):
        SlowTarget.parse(text)
