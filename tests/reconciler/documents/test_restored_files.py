"""The file of a request as it counts, whatever main has of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.documents.restored_files import as_it_counts, ending, ends, last_read, readable, says
from reconciler.store.memory_store import MemoryStore
from reconciler.store.store_port import Draft, Person
from schemas.documents.gpr import GPRSpec, RequestSpec, Wish, resolve
from tests.support.memory_remote import MemoryRemote
from tests.support.world import START, gpr

KEY, PATH = "vision/train", "slices/vision/gprs/train.yaml"
COMMENTED = f"# for the paper\n{gpr('vision', 'train', gpuShape='H100-80GB')}".encode()
LABELLED = (
    gpr("vision", "train").replace("name: train", "name: train\n  labels: {egs.dev/nonce: seed}").encode()
)
MOVED = gpr("vision", "train", move=3).encode()
BROKEN = b"kind: ["
TEMPLATES = {"small": Wish(nodes=3)}


def _accepted(data: bytes) -> RequestSpec:
    found = says(readable(PATH, data), TEMPLATES)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("last", "accepted", "same"),
    [
        pytest.param(
            COMMENTED, _accepted(COMMENTED), True, id="what says just what counts comes back as it was"
        ),
        pytest.param(
            COMMENTED.replace(b"nodes: 1", b"nodes: 2"),
            _accepted(COMMENTED),
            False,
            id="what never counted does not come back",
        ),
        pytest.param(
            MOVED, _accepted(MOVED), False, id="a place that an admin gave it is the admin's to give"
        ),
        pytest.param(
            None, _accepted(COMMENTED), False, id="of a file that nobody knows the accepted spec is written"
        ),
        pytest.param(BROKEN, _accepted(COMMENTED), False, id="a broken file does not come back"),
    ],
)
def test_the_file_that_comes_back_says_what_counts(
    last: bytes | None, accepted: RequestSpec, same: bool
) -> None:
    found = as_it_counts(KEY, last, accepted, TEMPLATES)
    assert (found == last) is same
    assert _accepted(found) == accepted.model_copy(update={"move": 0})


def test_labels_survive_where_the_file_is_written_anew() -> None:
    """The object of a cluster and the request's id are known by them."""
    other = _accepted(LABELLED).model_copy(update={"priority": 7})
    document = readable(PATH, as_it_counts(KEY, LABELLED, other, {}))
    assert document is not None
    assert document.metadata.labels == {"egs.dev/nonce": "seed"}


SPECS = st.builds(
    GPRSpec,
    slice=st.just("vision"),
    nodes=st.integers(1, 9),
    gpu_shape=st.sampled_from(["any", "H100-80GB", ("A100-40GB", "H100-80GB")]),
    memory_per_gpu=st.sampled_from([None, 80, 81920]),
    clusters=st.sampled_from([None, (), ("east", "west")]),
    duration=st.timedeltas(min_value=START - START, max_value=START.resolution * 10**14).map(
        lambda length: type(length)(minutes=1 + int(length.total_seconds()) // 60)
    ),
    display_name=st.sampled_from([None, "Try 2: larger", "on"]),
    not_before=st.sampled_from([None, START]),
    preemptible=st.sampled_from([None, False]),
    stopped=st.booleans(),
    move=st.integers(-3, 3),
)


@given(SPECS)
def test_whatever_was_accepted_is_what_the_file_says(spec: GPRSpec) -> None:
    accepted = resolve(spec, None)
    assert isinstance(accepted, RequestSpec)
    assert _accepted(as_it_counts(KEY, None, accepted, {})) == accepted.model_copy(update={"move": 0})


@pytest.mark.parametrize(
    ("there", "counts", "want"),
    [
        pytest.param(COMMENTED, None, True, id="a file that is there ends with its comments"),
        pytest.param(BROKEN, COMMENTED, True, id="a broken file gives way to what counts"),
        pytest.param(None, COMMENTED, True, id="a file that is gone comes back"),
        pytest.param(None, None, False, id="of what nobody knows nothing is written"),
    ],
)
def test_what_ends_a_request(there: bytes | None, counts: bytes | None, want: bool) -> None:
    found = ending(KEY, there, counts)
    assert ends(PATH, found) is want
    assert not want or b"# for the paper" in (found or b"")


@pytest.mark.parametrize(
    ("history", "want"),
    [
        pytest.param([COMMENTED, None], COMMENTED, id="before it was deleted"),
        pytest.param([COMMENTED, BROKEN, None], COMMENTED, id="before it was broken"),
        pytest.param([BROKEN], None, id="it was never whole"),
        pytest.param([], None, id="it was never there"),
    ],
)
def test_what_main_had_last(history: list[bytes | None], want: bytes | None) -> None:
    store, who, tip = MemoryStore(MemoryRemote()), Person("Bo", "bo@example.com"), None
    for data in (b"other", *history):
        path = "README.md" if data == b"other" else PATH
        tip = store.write(Draft({path: data}, "Change", who, START, tip, tip))
    assert tip is not None
    assert last_read(store, tip, PATH) == want
