"""The cache of parsed documents: it survives restarts and harm, and is never trusted blindly."""

from __future__ import annotations

import sqlite3

import pytest

from reconciler.store.document_cache import DocumentCache

DOCUMENTS = {f"{n:040x}": b'{"n": %d}' % n for n in range(1200)}


@pytest.fixture(params=["file", "memory"])
def path(request, tmp_path):
    return tmp_path / "deep" / "cache.sqlite" if request.param == "file" else None


def test_what_was_put_is_found_and_nothing_else(path):
    cache = DocumentCache(path, "v1")
    cache.put_many(DOCUMENTS)
    assert cache.get_many(DOCUMENTS) == DOCUMENTS
    assert cache.get_many(["f" * 40]) == {}
    assert cache.get_many([]) == {}


def test_documents_survive_a_restart(tmp_path):
    first = DocumentCache(tmp_path / "c", "v1")
    first.put_many(DOCUMENTS)
    first.close()
    assert DocumentCache(tmp_path / "c", "v1").get_many(DOCUMENTS) == DOCUMENTS


def test_another_version_finds_nothing_and_leaves_nothing(tmp_path):
    first = DocumentCache(tmp_path / "c", "v1")
    first.put_many(DOCUMENTS)
    first.close()
    second = DocumentCache(tmp_path / "c", "v2")
    assert second.get_many(DOCUMENTS) == {}
    second.close()
    assert DocumentCache(tmp_path / "c", "v1").get_many(DOCUMENTS) == {}


def test_only_live_documents_are_retained(path):
    cache = DocumentCache(path, "v1")
    cache.put_many(DOCUMENTS)
    live = list(DOCUMENTS)[:700]
    cache.retain(live)
    assert list(cache.get_many(DOCUMENTS)) == live
    cache.retain([])
    assert cache.get_many(DOCUMENTS) == {}


@pytest.mark.parametrize(
    "remove",
    [lambda cache, dead: cache.drop(dead), lambda cache, dead: cache.retain(DOCUMENTS.keys() - set(dead))],
    ids=["dropped", "not retained"],
)
def test_the_work_of_a_removal_is_in_proportion_to_what_is_removed(remove):
    cache, work = DocumentCache(None, "v1"), [0]
    cache.put_many(DOCUMENTS)

    def counted():
        work[0] += 1

    cache._database.set_progress_handler(counted, 1)
    remove(cache, list(DOCUMENTS)[:400])
    assert len(cache.get_many(DOCUMENTS)) == len(DOCUMENTS) - 400
    assert work[0] < 100 * len(DOCUMENTS)  # a look at all of the table for each would be 400 times that


@pytest.mark.parametrize(
    "harm", [b"", b"not a database at all " * 100, b"SQLite format 3\0" + b"\xff" * 5000]
)
def test_a_broken_file_is_made_anew(tmp_path, harm):
    (tmp_path / "c").write_bytes(harm)
    cache = DocumentCache(tmp_path / "c", "v1")
    cache.put_many({"a": b"1"})
    cache.close()
    assert DocumentCache(tmp_path / "c", "v1").get_many(["a"]) == {"a": b"1"}


def test_a_file_that_breaks_in_its_middle_costs_only_time(tmp_path):
    first = DocumentCache(tmp_path / "c", "v1")
    first.put_many({oid: text * 50 for oid, text in DOCUMENTS.items()})
    first.close()
    size = (tmp_path / "c").stat().st_size
    with (tmp_path / "c").open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))
    cache = DocumentCache(tmp_path / "c", "v1")
    cache.get_many(DOCUMENTS)
    cache.put_many({"a": b"1"})
    cache.put_many({"a": b"1"})
    assert cache.get_many(["a"]) == {"a": b"1"}


def test_a_folder_that_cannot_be_used_leaves_the_cache_in_memory(tmp_path):
    (tmp_path / "file").write_text("x")
    cache = DocumentCache(tmp_path / "file" / "c", "v1")
    cache.put_many({"a": b"1"})
    assert cache.get_many(["a"]) == {"a": b"1"}


def test_a_file_that_another_process_locks_is_left_alone(tmp_path):
    DocumentCache(tmp_path / "c", "v1").close()
    other = sqlite3.connect(tmp_path / "c", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    cache = DocumentCache(tmp_path / "c", "v1")
    cache.put_many({"a": b"1"})
    assert cache.get_many(["a"]) == {"a": b"1"}
    other.execute("COMMIT")
    assert other.execute("SELECT count(*) FROM documents").fetchone() == (0,)
    other.close()


def test_contents_are_bytes_and_are_never_run(tmp_path):
    """A pickle put in by a stranger comes out as bytes, as everything does."""
    cache = DocumentCache(tmp_path / "c", "v1")
    cache.put_many({"a": b"cos\nsystem\n(S'false'\ntR."})
    assert cache.get_many(["a"]) == {"a": b"cos\nsystem\n(S'false'\ntR."}


DAMAGES = {
    "cut in the middle": lambda data, at: data[: len(data) // 2],
    "cut behind its head": lambda data, at: data[:100],
    "empty": lambda data, at: b"",
    "a head that is none": lambda data, at: b"\xff" * 16 + data[16:],
    "a page of zeros": lambda data, at: data[:4096] + b"\0" * 4096 + data[8192:],
} | {
    f"a flipped byte {part} % in": lambda data, at, part=part: _flipped(data, len(data) * part // 100)
    for part in range(3, 100, 12)
}


def _flipped(data, at):
    return data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :]


@pytest.mark.parametrize("open_", [True, False], ids=["while it is open", "while it is closed"])
@pytest.mark.parametrize("harm", [pytest.param(harm, id=name) for name, harm in DAMAGES.items()])
def test_a_damaged_file_is_made_anew_and_never_says_what_is_not_so(tmp_path, harm, open_):
    path = tmp_path / "c"
    cache = DocumentCache(path, "v1")
    cache.put_many(DOCUMENTS)
    cache.close()
    if open_:
        cache = DocumentCache(path, "v1")
    path.write_bytes(harm(path.read_bytes(), 0))
    if not open_:
        cache = DocumentCache(path, "v1")
    for _ in range(3):
        found = cache.get_many(DOCUMENTS)
        assert found.items() <= DOCUMENTS.items()
        cache.put_many(DOCUMENTS)
    assert cache.get_many(DOCUMENTS) == DOCUMENTS
    cache.close()
    again = DocumentCache(path, "v1")
    assert again.get_many(DOCUMENTS).items() <= DOCUMENTS.items()
    again.put_many(DOCUMENTS)
    assert again.get_many(DOCUMENTS) == DOCUMENTS
