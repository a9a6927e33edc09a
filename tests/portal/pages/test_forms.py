"""What a browser sends: values without spaces around them, and objects as they were pasted. D13."""

from __future__ import annotations

import pytest
import yaml

from portal.pages.forms import _trimmed


@pytest.mark.parametrize(
    ("value", "want"),
    [
        pytest.param("  vision \r\n", "vision", id="one line"),
        pytest.param(" \r\n ", "", id="nothing"),
        pytest.param("a: 1\r\nb: 2\r\n", "a: 1\r\nb: 2", id="several lines"),
        pytest.param("\r\n  a: 1\r\n  b: 2\r\n  \r\n", "  a: 1\r\n  b: 2", id="several that are indented"),
    ],
)
def test_values_are_trimmed_and_indentation_stays(value: str, want: str) -> None:
    assert _trimmed(value) == want


def test_indented_objects_are_still_yaml() -> None:
    assert yaml.safe_load(_trimmed("  kind: Job\r\n  metadata:\r\n    name: a\r\n")) == {
        "kind": "Job",
        "metadata": {"name": "a"},
    }
