"""What the client decides again because it stands alone is what commands on a repository decide."""

from __future__ import annotations

from pathlib import Path

import pytest

from egs import modes
from reconciler.sources.here import is_bare


@pytest.mark.parametrize("missing", ["", "HEAD", "objects", "refs"])
def test_a_bare_repository_is_one_for_both(tmp_path: Path, missing: str) -> None:
    for name in {"objects", "refs"} - {missing}:
        (tmp_path / name).mkdir()
    if missing != "HEAD":
        (tmp_path / "HEAD").write_text("ref: refs/heads/main\n")
    assert modes.is_repository(tmp_path) == is_bare(tmp_path) == (not missing)
