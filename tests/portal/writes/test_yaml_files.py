"""Edits by the API: what differs is changed and every other byte stays (K1)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.http.errors import ApiError
from portal.writes.yaml_files import standing, with_changes
from reconciler.documents.yaml_edit import new_document
from schemas.documents.gpr import GPRTemplate, Wish
from schemas.documents.slice import SliceLimits
from schemas.reading.reader import read_document
from tests.support.profile import law

PATH = "templates/small.yaml"
COMMENTED = b"""# What most small jobs need.
apiVersion: egs.dev/v1alpha1
kind: GPRTemplate
metadata:
  name: small
spec:
  nodes: 1        # never more
  gpuShape: [H100-80GB, A100-80GB]   # in order of preference
  duration: "2h"
  priority: 120
"""


class Files:
    """A tree of files."""

    def __init__(self, files):
        self.files = files

    def read(self, path):
        return self.files.get(path)

    def below(self, folder):
        return sorted(path for path in self.files if path.startswith(f"{folder}/"))

    def authors(self, path):
        return frozenset()


def small():
    found = read_document(PATH, COMMENTED)
    assert isinstance(found, GPRTemplate)
    return found


def test_one_field_is_one_changed_line_and_comments_stay():
    before = small().spec
    after = before.model_copy(update={"priority": 150})
    assert with_changes(COMMENTED, ("spec",), before, after) == COMMENTED.replace(b"120", b"150")


def test_a_value_that_means_the_same_is_left_as_it_is_written():
    before = small().spec
    assert with_changes(COMMENTED, ("spec",), before, before.model_copy()) == COMMENTED


def test_a_field_that_became_its_default_leaves_the_file():
    before = small().spec
    after = before.model_copy(update={"priority": None})
    assert with_changes(COMMENTED, ("spec",), before, after) == COMMENTED.replace(b"  priority: 120\n", b"")


LIMITS = st.builds(
    SliceLimits,
    max_priority=st.integers(1, 300),
    max_nodes=st.none() | st.integers(1, 100),
    max_waiting=st.none() | st.integers(1, 1000),
    gpu_shapes=st.sampled_from([(), ("H100-80GB",), ("H100-80GB", "A100-80GB")]),
)


@law(100)
@given(LIMITS, LIMITS)
def test_an_edited_file_reads_as_what_was_meant(before, after):
    spec = {"members": [{"email": "bo@example.com"}], "clusters": ["east"], "namespaces": ["vision"]}
    limits = before.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    data = new_document("Slice", "vision", {**spec, "limits": limits or None})
    edited = with_changes(data, ("spec", "limits"), before, after)
    assert read_document("slices/vision/slice.yaml", edited).spec.limits == after


def test_a_file_that_does_not_read_is_not_written_over():
    """It has something that nobody understands yet; a person mends it."""
    with pytest.raises(ApiError) as caught:
        standing(Files({PATH: b"kind: [\n"}), PATH, GPRTemplate)
    assert caught.value.status == 409
    assert PATH in str(caught.value)
    assert standing(Files({}), PATH, GPRTemplate) is None


def test_a_new_document_has_what_is_given_and_nothing_else():
    data = new_document("GPRTemplate", "small", {"nodes": 1, "duration": "2h", "priority": None})
    found = read_document(PATH, data)
    assert isinstance(found, GPRTemplate)
    assert found.spec == Wish.model_validate({"nodes": 1, "duration": "2h"})
