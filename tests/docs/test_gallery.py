"""Each example of the gallery is a valid repository, whose requests all have a place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reconciler.cli.rig import egs

GALLERY = Path(__file__).parents[2] / "examples" / "gallery"
EXAMPLES = sorted(path.name for path in GALLERY.iterdir() if path.is_dir())


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_valid_and_its_requests_have_a_place(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EGS_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("EGS_REPO", raising=False)
    checked = egs("validate", GALLERY / name, "-o", "json")
    assert (checked.code, checked.json["problems"]) == (0, [])
    planned = egs("plan", "--repo", GALLERY / name, "-o", "json").json
    assert planned["refused"] == []
    assert planned["requests"]


def test_the_list_names_each_example() -> None:
    text = (GALLERY / "README.md").read_text("utf-8")
    assert [name for name in EXAMPLES if f"]({name}/)" not in text] == []
