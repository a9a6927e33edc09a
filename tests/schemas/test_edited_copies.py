"""A copy with other values is that of pydantic, and leaves the original as it was."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from schemas.documents.gpr import RequestSpec

SPEC = RequestSpec(slice="a", nodes=1, duration=timedelta(hours=1))


@pytest.mark.parametrize("changes", [{}, {"nodes": 2}, {"display_name": None, "model": SPEC.model}])
def test_an_edited_copy_is_that_of_pydantic(changes: dict[str, Any]) -> None:
    mine, theirs = SPEC.edited(**changes), SPEC.model_copy(update=changes)
    assert (mine, mine.model_fields_set, vars(mine)) == (theirs, theirs.model_fields_set, vars(theirs))
    assert mine.model_dump_json() == theirs.model_dump_json()
    assert repr(mine.edited(nodes=9).edited(nodes=mine.nodes)) == repr(mine)
    assert (SPEC.nodes, SPEC.model_fields_set) == (1, {"slice", "nodes", "duration"})
