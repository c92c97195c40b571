"""On which connections requests are sent: the key ``connections`` of a scenario."""

from __future__ import annotations

from msgspec import Struct

from ssbench.scenario.rule import Rule, is_number


class ConnectionSettings(Struct, frozen=True):
    """A share of operations, ``new``, has a new connection for each request; the others use kept ones.

    With ``tls_resume`` a new connection continues the TLS session of an earlier one, where the server allows
    it.
    """

    new: float = 0.0
    tls_resume: bool = False

    def __str__(self) -> str:
        """Return it in words."""
        words = f"new for {100 * self.new:g}% of operations" if self.new else "kept"
        return f"{words}, TLS sessions resumed" if self.tls_resume else words


def _parse_connections(value: object) -> object:
    """Return what a value means; any wrong value unchanged."""
    match value:
        case "kept" | "new":
            return ConnectionSettings(float(value == "new"))
        case dict() if value and value.keys() <= {"new", "tls_resume"}:
            new, resume = value.get("new", 0), value.get("tls_resume", False)
            if is_number(new) and new <= 1 and type(resume) is bool:
                return ConnectionSettings(float(new), resume)
    return value


CONNECTIONS_RULE = Rule(
    lambda value: isinstance(value, ConnectionSettings),
    "kept, new, or a mapping with new, the share of operations from 0 to 1 that have new connections,"
    " tls_resume, which is true or false, or both",
    convert=_parse_connections,
)
