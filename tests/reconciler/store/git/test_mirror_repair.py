"""A damaged mirror heals itself: whatever file of it is flipped, cut, lost or left over, all that is asked for comes.

Each damage meets a mirror that a process has open, and one that a process opens.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from reconciler.store.document_cache import DocumentCache
from reconciler.store.git.git_store import GitStore
from reconciler.store.git.mirror import Limits
from reconciler.store.store_port import Draft, Outcome
from schemas.errors import Fault
from tests.reconciler.store.conftest import BO, NOW, push_one
from tests.support import repos

Harm = Callable[[Path], object]


def flipped(file: Path, at: int) -> None:
    """One byte is another; git makes its packs read-only."""
    file.chmod(0o644)
    data = bytearray(file.read_bytes())
    data[at] ^= 0xFF
    file.write_bytes(bytes(data))


def cut(file: Path, to: float = 0.5) -> None:
    """What a power cut leaves."""
    file.chmod(0o644)
    file.write_bytes(file.read_bytes()[: int(file.stat().st_size * to)])


def each(pattern: str, harm: Callable[[Path], object]) -> Harm:
    """Done to every file of that name."""

    def all_of(mirror: Path) -> None:
        files = sorted(mirror.glob(pattern))
        assert files, f"no mirror of ours has {pattern}"
        for file in files:
            harm(file)

    return all_of


def text(name: str, content: str) -> Harm:
    return lambda mirror: (
        (mirror / name).parent.mkdir(parents=True, exist_ok=True),
        (mirror / name).write_text(content),
    )


def mixed(mirror: Path) -> None:
    """Refs in one file, and the objects of one pack lie loose."""
    git = ["git", "-C", str(mirror)]
    subprocess.run([*git, "pack-refs", "--all"], check=True)
    pack = min(mirror.glob(PACKS))
    for file in mirror.glob(f"objects/pack/{pack.stem}.*"):
        shutil.move(file, mirror.parent / file.name)
    with (mirror.parent / pack.name).open("rb") as data:
        subprocess.run([*git, "unpack-objects", "-q"], stdin=data, check=True)


PACKS = "objects/pack/*.pack"
HARMS = {
    "a flipped byte in the trailer of every pack": each(PACKS, lambda f: flipped(f, -1)),
    "a flipped byte in the head of every pack": each(PACKS, lambda f: flipped(f, 5)),
    "a flipped byte in the middle of every pack": each(PACKS, lambda f: flipped(f, f.stat().st_size // 2)),
    "half of every pack": each(PACKS, cut),
    "empty packs": each(PACKS, lambda f: cut(f, 0)),
    "no packs": each(PACKS, Path.unlink),
    "a flipped byte in every index": each("objects/pack/*.idx", lambda f: flipped(f, 1040)),
    "half of every index": each("objects/pack/*.idx", cut),
    "no index": each("objects/pack/*.idx", Path.unlink),
    "half a configuration": each("config", cut),
    "an empty configuration": each("config", lambda f: cut(f, 0)),
    "a configuration that is none": text("config", "[core"),
    "half a HEAD": each("HEAD", cut),
    "no HEAD": each("HEAD", Path.unlink),
    "half of the packed refs": each("packed-refs", lambda f: cut(f, 0.7)),
    "a flipped byte in the packed refs": each("packed-refs", lambda f: flipped(f, -60)),
    "half of every loose object": each("objects/[0-9a-f][0-9a-f]/*", cut),
    "a ref to nowhere": text("refs/remotes/origin/main", "1" * 40 + "\n"),
    "an empty ref": text("refs/remotes/origin/main", ""),
    "what is remembered leads nowhere": text("refs/egs/seen/main", "1" * 40 + "\n"),
    "a shallow mirror": lambda m: (m / "shallow").write_text(f"{repos.git(m, 'rev-parse', TRACKED)}\n"),
    "objects of another place": text("objects/info/alternates", "/nowhere\n"),
    "locks that were left over": lambda m: [
        text(name, "")(m) for name in ("config.lock", "packed-refs.lock", f"{TRACKED}.lock")
    ],
}
TRACKED = "refs/remotes/origin/main"


@pytest.fixture
def world(remote: Path, tmp_path: Path, open_store):
    """A mirror with some packs that `store()` opens, and what its remote has."""
    mirror = tmp_path / "m"

    def store(**limits: int) -> GitStore:
        return open_store(mirror=mirror, limits=Limits(**limits))

    first = store()
    for number in range(3):
        push_one(first, content=b"%d" % number * 400)
    first.remember("main", first.tips()["main"])
    first.close()
    mixed(mirror)
    return store, mirror, remote


def works(store: GitStore, remote: Path) -> None:
    """Everything that a controller does with a mirror, upkeep too."""
    theirs = repos.commit(remote, {"b": b"theirs"}, "main")
    tip = store.fetch(["main", "other"])["main"]
    assert tip == theirs
    assert store.read_path(tip, "b") == b"theirs"
    assert len(store.log(tip, 10)) == 5
    assert {entry.path for entry in store.diff(None, tip)} >= {"a", "b"}
    for number in range(3):
        new = store.write(Draft({"a": b"again %d" % number}, "Change", BO, NOW, tip, tip))
        assert store.push("main", new, tip) is Outcome.COMMITTED
        tip = new
    store.fetch(["main"])
    assert store.alarms() == []


@pytest.mark.parametrize("harm", [pytest.param(harm, id=name) for name, harm in HARMS.items()])
def test_a_mirror_that_is_damaged_while_it_is_closed_heals(harm, world):
    open_mirror, mirror, remote = world
    harm(mirror)
    works(open_mirror(packs=2), remote)


@pytest.mark.parametrize("harm", [pytest.param(harm, id=name) for name, harm in HARMS.items()])
def test_a_mirror_that_is_damaged_while_it_is_open_heals(harm, world):
    open_mirror, mirror, remote = world
    store = open_mirror(packs=9)
    store.fetch(["main"])
    harm(mirror)
    store._reader.close()  # helpers that live may have read it all before
    store._mirror._limits = Limits(packs=2)
    works(store, remote)


def unsaid(store: GitStore, remote: Path) -> None:
    """One more commit comes."""
    theirs = repos.commit(remote, {"c": os.urandom(100)}, "main")
    assert store.fetch(["main"]) == {"main": theirs}


def test_a_mirror_that_is_made_anew_is_told_once(world):
    open_mirror, mirror, remote = world
    store = open_mirror()
    each(PACKS, cut)(mirror)
    unsaid(store, remote)
    assert store.read_path(store.tips()["main"], "a") is not None
    (told,) = store.mended()
    assert str(mirror) in told
    assert "created again" in told
    assert store.mended() == ()


def looks(store: GitStore, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What each look at the whole mirror finds from now on."""
    found: list[str] = []
    look = store._mirror.damage
    monkeypatch.setattr(store._mirror, "damage", lambda: found.append(look()) or found[-1])
    return found


def test_a_sound_mirror_that_is_asked_for_what_nobody_has_is_looked_at_now_and_then(world, monkeypatch):
    open_mirror, _, _ = world
    store = open_mirror()
    found = looks(store, monkeypatch)
    for _ in range(41):
        store.fetch(["main"])
        for _ in range(3):
            with pytest.raises(Fault):
                store.commit("1" * 40)
    assert found == ["", "", ""]
    assert store.mended() == ()


def test_a_disk_that_breaks_every_mirror_has_the_remote_downloaded_less_and_less_often(world, monkeypatch):
    open_mirror, mirror, _ = world
    store = open_mirror(doubts=1)
    made = 0
    for _ in range(60):
        each(PACKS, cut)(mirror)
        store._reader.close()
        with suppress(Fault):
            store.read_path(store.fetch(["main"])["main"], "a")
        made += len(store.mended())
    assert 3 <= made <= 8


def test_a_damaged_mirror_is_kept_while_the_remote_is_away(world):
    open_mirror, mirror, remote = world
    store = open_mirror(doubts=1)
    tip = store.fetch(["main"])["main"]
    each("objects/pack/*.pack", lambda file: flipped(file, -1))(mirror)
    remote.rename(remote.with_name("away.git"))
    for _ in range(3):
        with pytest.raises(Fault) as caught:
            store.fetch(["main"])
        assert caught.value.reason == "RemoteUnreachable"
    assert store.tips() == {"main": tip}
    with pytest.raises(Fault):  # never: there is no such file
        store.read_path(tip, "a")
    remote.with_name("away.git").rename(remote)
    unsaid(store, remote)


def test_what_the_remote_has_no_more_is_saved_where_it_is_sound(world):
    """Of a status branch that was removed the mirror may have the only copy."""
    open_mirror, mirror, remote = world
    store = open_mirror()
    tip = push_one(store, "egs/status")
    store.remember("egs/status", tip)
    repos.git(remote, "branch", "-D", "egs/status")
    assert store.fetch(["main", "egs/*"]).keys() == {"main"}
    (mirror / "config").write_text("[core")
    unsaid(store, remote)
    assert store.mended() != ()
    assert store.remembered("egs/status") == tip
    assert store.read_path(tip, "a") == b"1"


def test_what_is_remembered_of_a_branch_outlives_the_branch_the_process_and_the_repacking(world):
    open_mirror, _, remote = world
    store = open_mirror(packs=1, operations=1)
    tip = push_one(store, "egs/status")
    store.remember("egs/status", tip)
    repos.git(remote, "branch", "-D", "egs/status")
    for number in range(3):
        push_one(store, content=b"%d" % number)
    store.close()
    store = open_mirror()
    store.fetch(["main", "egs/*"])
    assert store.remembered("egs/status") == tip
    assert store.commit(tip).oid == tip
    assert store.remembered("main") is not None
    assert store.remembered("egs/none") is None


# -- a full disk -----------------------------------------------------------------------------------------------


@pytest.fixture
def small(tmp_path: Path):
    """A disk of 4 MB."""
    place = tmp_path / "small"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)], capture_output=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"no small disk can be mounted here: {done.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_no_damage_outlives_a_full_disk(small, remote, open_store):
    """Whatever is tried while nothing can be written, all goes on when there is room again."""
    store = open_store(mirror=small / "m", limits=Limits(packs=4, operations=20))
    tip = push_one(store)
    cache = DocumentCache(small / "documents.sqlite", "v1")
    cache.put_many({"1" * 40: b"{}"})
    for room in (0, 1000, 5000, 20_000, 60_000):
        filler = small / "filler"
        free = os.statvfs(small).f_bavail * os.statvfs(small).f_frsize
        filler.write_bytes(b"\0" * max(0, free - room))
        for number in range(6):
            with suppress(Fault, OSError):
                repos.commit(remote, {"noise": os.urandom(3000)}, "main")
                tip = store.fetch(["main"])["main"]
                new = store.write(Draft({"a": b"%d" % number}, "Change", BO, NOW, tip, tip))
                store.push("main", new, tip)
                store.remember("main", new)
            cache.put_many({f"{number}" * 40: os.urandom(2000)})
            cache.get_many(["1" * 40])
        filler.unlink()
        unsaid(store, remote)
        works_on(store)
    store.close()
    works_on(open_store(mirror=small / "m"))
    assert not list((small / "m").rglob("tmp_*")) + list((small / "m").rglob("*.lock"))
    cache.close()
    again = DocumentCache(small / "documents.sqlite", "v1")
    again.put_many({"9" * 40: b"{}"})
    assert again.get_many(["9" * 40]) == {"9" * 40: b"{}"}


def works_on(store: GitStore) -> None:
    """It reads and writes, and git finds nothing wrong."""
    tip = store.fetch(["main"])["main"]
    new = store.write(Draft({"a": b"on"}, "Change", BO, NOW, tip, tip))
    assert store.push("main", new, tip) is Outcome.COMMITTED
    assert store._mirror.damage() == ""
