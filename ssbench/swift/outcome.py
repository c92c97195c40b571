"""How a request ends: one record for successes and failures, and what its attempts come to until then."""

from __future__ import annotations

from time import monotonic

from msgspec import Struct

from ssbench.swift.causes import AttemptError, status_cause
from ssbench.swift.http_response import Answer, BodyCheck

_REFUSED = status_cause(401)


class Outcome(Struct, frozen=True, gc=False):
    """How a request ended.

    ``first_byte`` and ``last_byte`` are seconds from the start of the first attempt, connecting included, to
    the first and the last byte of the last answer; None for a failure, and first_byte None for a PUT.
    ``completed`` is when it ended. ``size``: bytes of body moved by a success, of a HEAD the object's.
    ``retries`` counts all attempts but one, ``retried`` the causes of those before the last. ``cause`` is
    None for a success, ``detail`` one line for people. ``unauthorized``: a 401 for which a new token may
    help; then ``last_byte`` is the time spent so far. ``found``: of an initial object, the size of what was
    there under its name, None where nothing was. ``status`` is that of the last answer, 0 where there was
    none; ``spent`` what a failure took, in seconds from the first attempt on; ``resent`` counts requests
    that were sent again at once because a kept connection had gone stale, which are no retries.
    ``connecting`` and ``pausing`` are how many of the seconds went into new connections and into our own
    pauses before retries; ``last_attempt`` is what the last attempt took, connecting aside, None where it
    was the only one. ``owner`` is whose the object is that a HEAD found, as its metadata says.
    """

    first_byte: float | None
    last_byte: float | None
    completed: float
    size: int
    retries: int
    trans_id: str | None
    cause: str | None = None
    detail: str = ""
    retried: dict[str, int] | None = None
    unauthorized: bool = False
    found: int | None = None
    status: int = 0
    spent: float | None = None
    resent: int = 0
    connecting: float = 0.0
    pausing: float = 0.0
    last_attempt: float | None = None
    owner: str | None = None


#: What was spent on a request before its token was refused: (retries, when the first attempt began, when the
#: last one ended, whether it may have been done). Moments are of the monotonic clock, None where not known.
Prior = tuple[int, float | None, float | None, bool]

NOTHING_BEFORE: Prior = (0, None, None, False)


class Effort(Struct, gc=False):
    """Running totals of the attempts of a request.

    ``began`` is when the first one began, None before. The others are as in :class:`Outcome`.
    ``unanswered``: a request was sent of which no answer came, so that it may have been carried out. ``name``
    is that of the object where bodies are verified, ``checked`` whether the body of a read is to be
    looked at, and ``check`` that of the last answer.
    """

    retries: int
    began: float | None = None
    retried: dict[str, int] | None = None
    resent: int = 0
    connecting: float = 0.0
    pausing: float = 0.0
    unanswered: bool = False
    name: bytes = b""
    checked: bool = False
    check: BodyCheck | None = None

    @classmethod
    def after(cls, prior: Prior) -> Effort:
        """Return the totals of a request that begins now, after what was spent on it before.

        What it waited since then, for a token and for its turn, is a pause. Clocks of two hosts err, so
        neither moment can be later than now.
        """
        retries, began, ended, _ = prior
        effort = cls(retries)
        if began is not None:
            now = monotonic()
            effort.began = min(began, now)
            effort.pausing = 0.0 if ended is None else max(0.0, now - ended)
        return effort

    def since(self, now: float) -> float:
        """Return the seconds from the first attempt until now."""
        return now - (now if self.began is None else self.began)

    def success(self, answer: Answer, sent: int | None) -> Outcome:
        """Return the outcome of a request with this answer; ``sent`` is the size of a PUT's body."""
        began = answer.sent_at if self.began is None else self.began
        return Outcome(
            answer.first_byte_at - began if sent is None else None,
            answer.last_byte_at - began,
            answer.last_byte_at,
            answer.size if sent is None else sent,
            self.retries,
            answer.trans_id,
            None,
            "",
            self.retried,
            status=answer.status,
            resent=self.resent,
            connecting=self.connecting,
            pausing=self.pausing,
            last_attempt=answer.last_byte_at - answer.sent_at if self.retries or self.resent else None,
            owner=answer.owner,
        )

    def failure(self, fault: AttemptError) -> Outcome:
        """Return the outcome of a request that ended with this fault."""
        now = monotonic()
        spent = self.since(now)
        unauthorized = fault.cause == _REFUSED
        return Outcome(
            None,
            spent if unauthorized else None,
            now,
            0,
            self.retries,
            fault.trans_id,
            fault.cause,
            str(fault),
            self.retried,
            unauthorized,
            status=fault.status,
            spent=None if self.began is None else spent,
            resent=self.resent,
            connecting=self.connecting,
            pausing=self.pausing,
        )
