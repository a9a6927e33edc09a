"""What the client says again because it stands alone is what the commands on a repository say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from egs import modes
from egs.remote import output as client
from reconciler.sources import output as whole
from reconciler.sources.open_source import is_bare

AT = datetime(2026, 11, 21, 8, 2, tzinfo=UTC)
CELLS: list[Any] = [None, True, False, 0, 1.5, "two words", ["a", "b"], ("a", AT), AT, timedelta(hours=3)]
DATA = {
    "name": "Größe",
    "nodes": [],
    "none": None,
    "ready": True,
    "wait": 1.5,
    "text": "on",
    "of": [{"a": "1"}],
}


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=9999)))
def test_durations_are_spoken_alike(span: timedelta) -> None:
    assert client.spoken(span) == whole.spoken(span)


@pytest.mark.parametrize("cell", CELLS, ids=repr)
def test_cells_are_shown_alike(cell: Any) -> None:
    assert client.shown(cell) == whole.shown(cell)


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_data_reads_alike(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    client.data(DATA, client.Form(form))
    said = capsys.readouterr().out
    whole.data(DATA, whole.Form(form))
    # Only the quotes around texts in YAML are another matter of taste.
    assert yaml.safe_load(said) == yaml.safe_load(capsys.readouterr().out) == DATA


@pytest.mark.parametrize("found", [[], [{"name": "a", "cell": cell} for cell in CELLS]], ids=["none", "some"])
def test_tables_are_laid_out_alike(found: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]) -> None:
    columns = [("NAME", client.field("name")), ("CELL", client.field("cell"))]
    client.rows(found, client.Form.TABLE, columns, "nothing")
    said = capsys.readouterr()
    whole.table(("NAME", "CELL"), [list(row.values()) for row in found], "nothing")
    assert said == capsys.readouterr()


@pytest.mark.parametrize("missing", ["", "HEAD", "objects", "refs"])
def test_a_bare_repository_is_one_for_both(tmp_path: Path, missing: str) -> None:
    for name in {"objects", "refs"} - {missing}:
        (tmp_path / name).mkdir()
    if missing != "HEAD":
        (tmp_path / "HEAD").write_text("ref: refs/heads/main\n")
    assert modes.is_repository(tmp_path) == is_bare(tmp_path) == (not missing)
