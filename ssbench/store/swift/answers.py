"""From answers to the outcome of a request: which are successes, what is wrong with others, and totals."""

from __future__ import annotations

from collections.abc import Collection
from time import monotonic

from msgspec import Struct, structs

from ssbench.store.causes import (
    WRONG_CONTENT,
    WRONG_ETAG,
    WRONG_METADATA,
    WRONG_SIZE,
    AttemptError,
    cause_of_status,
)
from ssbench.store.contract import PriorAttempts, RequestOutcome, StoreReply, StoreRequest
from ssbench.store.http.http_response import BodyCheck, HttpResponse, KeptBody, find_field, parse_fields
from ssbench.store.http.metadata import MetadataShape, describe_wrong_metadata

_UNAUTHORIZED_CAUSE = cause_of_status(401)

_WHOLE_STATUS = 200
_PARTIAL_STATUS = 206
_MISSING_STATUS = 404

#: Methods of requests whose answers have the metadata of the object.
_READING_METHODS = frozenset({"GET", "HEAD"})


class AttemptTotals(Struct, gc=False):
    """Running totals of the attempts of a request.

    ``began`` is when the first one began, None before. The others are as in :class:`RequestOutcome`.
    ``unanswered``: a request was sent of which no answer came, so that it may have been carried out. ``name``
    is that of the object where bodies are verified, ``checked`` whether the body of a read is to be
    looked at, ``first`` where in the object a part begins, ``keeps`` how many of its bytes are kept,
    ``longest`` how many bytes a body that is right has at most (0: any number), ``etag`` whether a body that
    is sent is announced with its MD5,
    and ``check`` that of the last answer. ``address`` is that of the last connection, of a host with several.
    """

    retries: int
    began: float | None = None
    retried: dict[str, int] | None = None
    resent: int = 0
    connecting: float = 0.0
    pausing: float = 0.0
    connections: int = 0
    resumed: int = 0
    unanswered: bool = False
    name: bytes = b""
    checked: bool = False
    first: int | None = None
    keeps: int = 0
    longest: int = 0
    etag: bool = False
    check: BodyCheck | None = None
    address: str = ""

    @classmethod
    def after(cls, prior: PriorAttempts) -> AttemptTotals:
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

    def success(self, answer: HttpResponse, sent: int | None) -> RequestOutcome:
        """Return the outcome of a request with this answer; ``sent`` is the size of a PUT's body.

        Of a body that the answer did not wait for only what was sent is counted, at least a byte: 0 stands
        for the whole of it.
        """
        began = answer.sent_at if self.began is None else self.began
        return RequestOutcome(
            answer.first_byte_at - began if sent is None else None,
            answer.last_byte_at - began,
            answer.last_byte_at,
            answer.size if sent is None else max(min(sent, 1), sent - answer.unsent),
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
            address=self.address,
            connections=self.connections,
            resumed=self.resumed,
            unchecked=int(answer.unchecked),
        )

    def failure(self, fault: AttemptError) -> RequestOutcome:
        """Return the outcome of a request that ended with this fault."""
        now = monotonic()
        spent = self.since(now)
        unauthorized = fault.cause == _UNAUTHORIZED_CAUSE
        return RequestOutcome(
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
            address=self.address,
            connections=self.connections,
            resumed=self.resumed,
        )


def is_success_status(status: int, request: StoreRequest) -> bool:
    """Whether a status is that of a success."""
    if request.success:
        return status in request.success
    if request.part is not None:
        return status == _PARTIAL_STATUS
    # The only success of a read: a part of an object (206) was not asked for.
    whole = request.method == "GET" and request.name and not request.path
    return 200 <= status < 300 and (status == _WHOLE_STATUS or not whole)


def is_already_done(status: int, request: StoreRequest, unanswered: bool, in_doubt: bool) -> bool:
    """Whether a status other than that of a success says that there is nothing more to do."""
    if status == _MISSING_STATUS and (request.missing_ok or (request.method == "DELETE" and unanswered)):
        return True
    return status in request.done_before and (unanswered or in_doubt)


def make_refusal_error(answer: HttpResponse, request: StoreRequest) -> AttemptError:
    """Return the fault of an answer whose status is no success."""
    status = answer.status
    detail = answer.detail or (
        f"{status}, which is no whole object" if request.part is None else f"{status}, which is no part"
    )
    return _make_error(request.causes.get(status) or cause_of_status(status), detail, answer)


def find_body_error(
    answer: HttpResponse, request: StoreRequest, check: BodyCheck | None
) -> AttemptError | None:
    """Return the fault of an answer of which the body or the ETag is not that of the object; else None."""
    expected = request.expected
    if expected and answer.size != expected:
        return _make_error(WRONG_SIZE, f"{answer.size} bytes of an object of {expected}", answer)
    if request.part is not None and (wrong := _describe_other_part(answer, request.part)):
        return _make_error(WRONG_CONTENT, wrong, answer)
    if check is not None and check.wrong is not None:
        what = f"other bytes than were written from byte {check.wrong} on"
        if request.keep:
            return _make_error(WRONG_SIZE, f"more than {request.keep} bytes", answer)
        return _make_error(WRONG_CONTENT, what, answer)
    if answer.wrong_etag is not None:
        return _make_error(WRONG_ETAG, answer.wrong_etag, answer)
    return None


def find_metadata_error(
    answer: HttpResponse, request: StoreRequest, seed: int, shapes: Collection[MetadataShape]
) -> AttemptError | None:
    """Return the fault of an answer that has other metadata than the object was written with; else None.

    These follow from a ``seed`` and have one of ``shapes``. Temporary URLs, which have a query, return none.
    """
    if (
        request.method not in _READING_METHODS
        or not 200 <= answer.status < 300
        or not request.name
        or request.path
        or request.query
        or request.content == ""
    ):
        return None
    path = f"{request.container}/{request.content or request.name}"
    wrong = describe_wrong_metadata(seed, path, answer.head, shapes)
    return None if wrong is None else _make_error(WRONG_METADATA, wrong, answer)


def _describe_other_part(answer: HttpResponse, part: tuple[int, int]) -> str | None:
    """Say that an answer is of another part of the object; a part may end earlier, with the object."""
    said = find_field(answer.head, b"content-range") or "no range"
    first, last = part
    if answer.size <= last - first + 1 and said.startswith(f"bytes {first}-{first + answer.size - 1}/"):
        return None
    return f"{said} of {answer.size} bytes, where bytes {first}-{last} were asked for"


def add_reply(outcome: RequestOutcome, answer: HttpResponse, check: BodyCheck | None) -> RequestOutcome:
    """Return the outcome with the fields of the answer, and the body that was kept."""
    body = bytes(check.body) if isinstance(check, KeptBody) else b""
    return structs.replace(outcome, reply=StoreReply(parse_fields(answer.head), body))


def _make_error(cause: str, detail: str, answer: HttpResponse) -> AttemptError:
    fault = AttemptError(cause, detail)
    fault.status, fault.trans_id = answer.status, answer.trans_id
    return fault
