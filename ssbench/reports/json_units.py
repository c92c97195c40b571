"""The units of the report as JSON. Every field has its unit in its type, and so in the schema."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

Seconds = Annotated[float, Meta(description="seconds")]
Moment = Annotated[float, Meta(description="seconds since 1970")]
Offset = Annotated[float, Meta(description="seconds after window.start")]
Bytes = Annotated[int, Meta(description="bytes", ge=0)]
PerSecond = Annotated[float, Meta(description="operations a second", ge=0)]
BytesPerSecond = Annotated[float, Meta(description="bytes a second", ge=0)]
Share = Annotated[float, Meta(description="share, 1 is all")]
Percent = Annotated[float, Meta(description="per cent, 100 is all")]
Count = Annotated[int, Meta(description="number", ge=0)]


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A frozen record; all fields are always written."""
