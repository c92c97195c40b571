"""Operations that wait until nothing reads their object."""

from __future__ import annotations

from ssbench.scenario.population import ReadsInFlight


def test_an_operation_has_its_object_when_the_last_of_its_readers_has_ended() -> None:
    readers = ReadsInFlight(2)
    readers.reading[1][7] = 2
    job = (3, 1, 0, 7, 100)
    readers.reserve(1, 7, job)
    assert 7 not in readers.reading[1]
    readers.end(1, 7)
    assert not readers.released
    readers.end(1, 7)
    assert [*readers.released] == [job]


def test_reads_of_an_object_that_nothing_waits_for_are_counted() -> None:
    readers = ReadsInFlight(1)
    readers.reading[0][7] = 3
    readers.end(0, 7)
    assert readers.reading[0] == {7: 2}
    readers.end(0, 7)
    readers.end(0, 7)
    assert readers.reading[0] == {}
    assert not readers.released
