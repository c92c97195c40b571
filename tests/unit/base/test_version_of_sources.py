"""What version a source tree has: of a tag, after one, without any, of an archive, of an sdist."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ssbench
from ssbench.base import version

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / ".ci"))
import source_version  # noqa: E402 - it is not part of the package

has_git = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
COMING = "1.5.0"


def git(tree: Path, *command: str) -> str:
    own = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    names = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    run = subprocess.run(
        ["git", *command], cwd=tree, env=os.environ | own | names, check=True, capture_output=True
    )
    return run.stdout.decode().strip()


def commit(tree: Path, words: str) -> str:
    git(tree, "commit", "-q", "--allow-empty", "-m", words)
    return git(tree, "rev-parse", "--short=8", "HEAD")


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """A tree without git, as somebody copied it."""
    tree = tmp_path / "tree"
    (tree / "ssbench" / "base").mkdir(parents=True)
    (tree / "ssbench" / "base" / "version.py").write_text(f'NUMBER = "{COMING}"\n')
    for name in (".git_archival.txt", ".gitattributes"):
        shutil.copy(ROOT / name, tree)
    return tree


@pytest.fixture
def clone(plain: Path) -> Path:
    git(plain, "init", "-q")
    git(plain, "add", "-A")
    commit(plain, "first")
    return plain


@has_git
def test_a_clone_without_tags_is_on_the_way_to_the_release_to_come(clone: Path) -> None:
    second = commit(clone, "second")
    assert source_version.find_version(clone) == f"{COMING}.dev2+g{second}"


@has_git
@pytest.mark.parametrize("options", [("-a", "-m", "x"), ()])
def test_a_tag_is_the_version_and_what_follows_it_says_so(clone: Path, options: tuple[str, ...]) -> None:
    git(clone, "tag", *options, "v1.5.0")
    assert source_version.find_version(clone) == "1.5.0"
    commit(clone, "second")
    third = commit(clone, "third")
    assert source_version.find_version(clone) == f"1.5.1.dev2+g{third}"
    git(clone, "tag", "v1.6.0rc1")
    git(clone, "tag", "nightly")
    assert source_version.find_version(clone) == "1.6.0rc1"
    fourth = commit(clone, "fourth")
    assert source_version.find_version(clone) == f"1.6.0rc2.dev1+g{fourth}"
    (clone / "ssbench" / "base" / "version.py").write_text('NUMBER = "1.10.0"\n')
    assert source_version.find_version(clone) == f"1.10.0.dev1+g{fourth}.changed"


@has_git
def test_a_clone_of_another_user_has_its_tag(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(clone, "tag", "v1.5.0")
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")  # as git's own tests do
    assert source_version.find_version(clone) == "1.5.0"


@has_git
def test_a_shallow_clone_counts_no_commits(clone: Path, tmp_path: Path) -> None:
    last = commit(clone, "second")
    git(tmp_path, "clone", "-q", "--depth", "1", clone.as_uri(), "shallow")
    assert source_version.find_version(tmp_path / "shallow") == f"{COMING}.dev0+g{last}"


@has_git
@pytest.mark.parametrize(("tag", "expected"), [(None, "1.5.0.dev0+g{}"), ("v1.5.0", "1.5.0")])
def test_an_archive_knows_its_commit(clone: Path, tmp_path: Path, tag: str | None, expected: str) -> None:
    last = git(clone, "rev-parse", "--short=8", "HEAD")
    if tag:
        git(clone, "tag", tag)
    (tmp_path / "unpacked").mkdir()
    git(clone, "archive", "-o", str(tmp_path / "it.tar"), "HEAD")
    subprocess.run(["tar", "-xf", tmp_path / "it.tar", "-C", tmp_path / "unpacked"], check=True)
    assert source_version.find_version(tmp_path / "unpacked") == expected.format(last)


def test_without_git_or_anything_else_it_is_a_development_state(
    plain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert source_version.find_version(plain) == f"{COMING}.dev0"
    (plain / ".git").mkdir()
    monkeypatch.setenv("PATH", "")
    assert source_version.find_version(plain) == f"{COMING}.dev0"


def test_an_sdist_keeps_the_version_of_its_build(plain: Path) -> None:
    source_version.write_version(plain, "1.4.9")
    assert source_version.find_version(plain) == "1.4.9"


@has_git
def test_an_sdist_in_a_repository_of_somebody_else_keeps_its_version(clone: Path) -> None:
    (clone / "PKG-INFO").touch()
    source_version.write_version(clone, "1.4.9")
    assert source_version.find_version(clone) == "1.4.9"


def test_the_program_says_what_was_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(version, "__file__", str(tmp_path / "version.py"))
    assert version._read_version() == f"{version.NUMBER}.dev0"
    (tmp_path / "version.txt").write_text("1.0.1.dev12+g0a1b2c3d\n")
    assert version._read_version() == "1.0.1.dev12+g0a1b2c3d"
    assert re.fullmatch(
        r"\d+\.\d+\.\d+((a|b|rc)\d+)?(\.dev\d+)?(\+g[0-9a-f]+(\.changed)?)?", ssbench.__version__
    )
