"""Types of fields with a unit: annotations from which msgspec takes the unit into a JSON Schema.

Records that are written as JSON (:mod:`ssbench.base.record`) use them; to Python they are plain numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

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

# JSON has no number for what is infinite or not defined: msgspec writes null. In Python these are floats.
if TYPE_CHECKING:
    PerhapsNumber = float
    PerhapsSeconds = float
    PerhapsMoment = float
    PerhapsShare = float
    PerhapsPerSecond = float
    PerhapsBytesPerSecond = float
else:
    PerhapsNumber = float | None
    PerhapsSeconds = Seconds | None
    PerhapsMoment = Moment | None
    PerhapsShare = Share | None
    PerhapsPerSecond = PerSecond | None
    PerhapsBytesPerSecond = BytesPerSecond | None
