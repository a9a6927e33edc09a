"""The walk over two trees finds what differs, and stops where there is no end of it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.store.git import tree_walk
from reconciler.store.git.git_objects import blob_oid
from reconciler.store.git.tree_walk import differing
from reconciler.store.store_port import Entry
from schemas.errors import Fault
from tests.support import repos

Files = dict[str, tuple[str, int]]
MODES = st.sampled_from([0o100644, 0o100755, 0o120000, 0o160000])
PATHS = st.lists(st.sampled_from(["a", "b", "ab", "a.b", "B", "ä"]), min_size=1, max_size=3).map("/".join)
FILES = st.dictionaries(PATHS, st.tuples(st.sampled_from("xyz"), MODES), max_size=8)


class Trees:
    """Tree objects in memory, made from files or by hand."""

    def __init__(self) -> None:
        self.known: dict[str, bytes] = {}
        self.asked = 0

    def read(self, oids: Sequence[str]) -> Mapping[str, bytes]:
        self.asked += len(oids)
        return {oid: self.known[oid] for oid in oids}

    def tree(self, entries: Sequence[tuple[str, str, str]]) -> str:
        """A tree of (mode, name, id)."""
        data = b"".join(repos.tree_entry(mode, name.encode(), oid) for mode, name, oid in entries)
        oid = hashlib.sha1(b"tree %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
        self.known[oid] = data
        return oid

    def of(self, files: Files) -> str:
        """The tree with these files."""
        below: dict[str, Files] = {}
        entries = []
        for path, file in files.items():
            name, slash, rest = path.partition("/")
            if slash:
                below.setdefault(name, {})[rest] = file
            else:
                entries.append((f"{file[1]:o}", name, blob_oid(file[0].encode())))
        entries += [("40000", name, self.of(inner)) for name, inner in below.items()]
        return self.tree(sorted(entries, key=lambda entry: entry[1]))


def possible(files: Files) -> Files:
    """A path is a file or a folder, not both."""
    return {path: file for path, file in files.items() if not any(p.startswith(f"{path}/") for p in files)}


@given(FILES.map(possible), FILES.map(possible))
def test_what_differs_is_found_and_nothing_else(old: Files, new: Files) -> None:
    trees = Trees()
    want = [
        Entry(path, blob_oid(new[path][0].encode()), new[path][1]) if path in new else Entry(path, None)
        for path in sorted(old.keys() | new.keys())
        if old.get(path) != new.get(path)
    ]
    assert differing(trees.read, trees.of(old), trees.of(new)) == want
    assert differing(trees.read, None, trees.of(new)) == differing(trees.read, trees.of({}), trees.of(new))


def test_folders_that_are_alike_are_not_read() -> None:
    trees = Trees()
    old: Files = {f"slices/s{i}/gprs/g.yaml": ("x", 0o100644) for i in range(100)}
    new = trees.of({**old, "slices/s7/gprs/g.yaml": ("y", 0o100644)})
    before = trees.of(old)
    trees.asked = 0
    assert len(differing(trees.read, before, new)) == 1
    assert trees.asked == 8  # two of each: the root, slices, s7, gprs


def bomb(trees: Trees, depth: int = 12) -> str:
    """Ten times ten times ten … files, in a few hundred bytes an entry."""
    oid = trees.tree([("100644", f"f{i}", blob_oid(b"x")) for i in range(10)])
    for _ in range(depth):
        oid = trees.tree([("40000", f"d{i}", oid) for i in range(10)])
    return oid


def deep(trees: Trees, depth: int) -> str:
    """Folders in folders."""
    oid = trees.tree([("100644", "f", blob_oid(b"x"))])
    for _ in range(depth):
        oid = trees.tree([("40000", "d" * 200, oid)])
    return oid


@pytest.mark.parametrize("from_nothing", [True, False], ids=["as a whole", "as a change"])
@pytest.mark.parametrize(
    "hostile",
    [
        pytest.param(bomb, id="a folder that holds itself ten times, twelve deep"),
        pytest.param(lambda trees: deep(trees, 5000), id="five thousand folders in each other"),
        pytest.param(
            lambda trees: trees.tree([("40000", f"{i:05}", bomb(trees, 4)) for i in range(50)]),
            id="wide and deep",
        ),
    ],
)
def test_a_tree_without_end_is_a_fault_in_short_time(hostile, from_nothing: bool) -> None:
    trees = Trees()
    old = None if from_nothing else trees.of({"a": ("x", 0o100644)})
    began = time.process_time()
    with pytest.raises(Fault, match="are not supported") as fault:
        differing(trees.read, old, hostile(trees))
    assert fault.value.reason == "TooManyFiles"
    assert time.process_time() - began < 10  # generous: it takes a fraction of a second


def test_as_many_paths_as_the_bound_are_read(monkeypatch) -> None:
    monkeypatch.setattr(tree_walk, "MAX_PATHS", 20)
    trees = Trees()
    files: Files = {f"{i:02}": ("x", 0o100644) for i in range(20)}
    assert len(differing(trees.read, None, trees.of(files))) == 20
    with pytest.raises(Fault):
        differing(trees.read, None, trees.of({**files, "more": ("x", 0o100644)}))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"100644 a", id="no id"),
        pytest.param(b"mode a\0" + b"x" * 20, id="a mode that is no number"),
        pytest.param(b"\0", id="nothing but the end of a name"),
    ],
)
def test_what_is_no_tree_is_a_fault(data: bytes) -> None:
    with pytest.raises(Fault) as fault:
        differing(lambda oids: dict.fromkeys(oids, data), None, "0" * 40)
    assert fault.value.reason == "CorruptObjects"
