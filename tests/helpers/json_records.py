"""What commands write as JSON, checked against its schema."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import jsonschema

from ssbench.base import record
from ssbench.reports import products


def valid(text: str, kind: str) -> dict[str, Any]:
    """Return what a text has that is valid JSON of a kind; the schema is that which a command prints."""
    made: dict[str, Any] = json.loads(text)
    _validator(kind).validate(made)
    return made


@cache
def _validator(kind: str) -> jsonschema.Draft202012Validator:
    schema = record.make_json_schema(products.find_record_class(kind))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)
