"""The table of products and formats: each can be made, and what cannot is refused before anything runs."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from ssbench import products
from ssbench.cli import capacity, master
from ssbench.errors import ExitCode, UsageError
from ssbench.products import Product


@pytest.mark.parametrize(
    ("product", "name"), [(product, name) for product in Product for name in products.names(product)]
)
def test_every_format_is_a_function(product: Product, name: str) -> None:
    assert callable(products.find(product, name))


@pytest.mark.parametrize("name", products.FILES)
def test_each_option_with_a_file_is_a_format_of_a_run(name: str) -> None:
    assert name in products.names(Product.RUN)
    assert products.option(name) == f"--{name.replace('_', '-')}"


def asked(*more: str) -> argparse.Namespace:
    arguments = ["run-scenario", "-f", "very_small", "--sweep", "users=1,2", *more]
    return master.parser(arguments).parse_args(arguments)


@pytest.mark.parametrize("option", ["--junit"])
def test_a_format_that_a_sweep_lacks_is_refused_before_it_begins(option: str) -> None:
    with pytest.raises(UsageError, match=rf"{option} is for a single run.*; leave it out with --sweep"):
        capacity.prepare(asked(option, "x"))


def test_a_new_format_of_one_product_cannot_end_a_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    """A format that was added for runs alone once ended a sweep of hours with a KeyError."""
    monkeypatch.setitem(products.FILES, "yaml", "file for YAML")
    monkeypatch.setitem(products._OWN[Product.RUN], "yaml", "ssbench.reports.json:report")
    with pytest.raises(UsageError, match="--yaml is for a single run"):
        capacity.prepare(asked("--yaml", "x"))


def test_the_command_line_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["run-scenario", "-f", "very_small", "--noop", "--workers", "1", "--sweep", "users=1,2"]
    assert master.main([*arguments, "--junit", str(tmp_path / "x")]) == ExitCode.USAGE
    assert "--junit is for a single run or a comparison; leave it out with --sweep" in capsys.readouterr().err
