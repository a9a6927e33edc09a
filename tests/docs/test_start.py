"""The pages of docs/start run as they stand and print what they say; only times, ids and addresses differ."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.walk import ROOT, walked

START = ROOT / "docs" / "start"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tour"])
def test_a_page_about_files_runs_as_it_stands(name: str, tmp_path: Path) -> None:
    """A1, B1, D2: a repository, a promise, an urgent request."""
    walked(START / f"{name}.md", tmp_path / "home", {}, {"$PWD/.venv/bin:": ""})
