"""The sub-command schema: each kind of JSON has one."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from ssbench.base import record
from ssbench.cli import master
from ssbench.reports import products


def head(schema: dict[str, Any]) -> str:
    return str(schema["$ref"]).rpartition("/")[2]


@pytest.mark.parametrize("kind", products.JSON_KINDS)
def test_each_kind_has_a_schema_that_the_command_prints(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert master.main(["schema", kind]) == 0
    schema = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator.check_schema(schema)
    top = schema["$defs"][head(schema)]
    assert {"format", "version", "made_by"} <= set(top["required"])
    (name,) = top["properties"]["format"]["enum"]
    assert name.startswith("ssbench ")


def test_no_two_kinds_have_one_name(capsys: pytest.CaptureFixture[str]) -> None:
    kinds = [record.make_json_schema(products.find_record_class(kind)) for kind in products.JSON_KINDS]
    names = [each["$defs"][head(each)]["properties"]["format"]["enum"][0] for each in kinds]
    assert len(set(names)) == len(names)
    assert master.main(["schema"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(products.JSON_KINDS)
