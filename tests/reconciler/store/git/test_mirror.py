"""The mirror: one owner, cleaned after a killed one, made anew when torn, bounded in size."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.store.git.mirror import Limits
from reconciler.store.store_port import Draft, Outcome
from schemas.errors import UserError
from tests.reconciler.store.conftest import BO, NOW, push_one
from tests.support import repos


def test_a_mirror_has_one_owner_at_a_time(tmp_path, open_store):
    first = open_store(mirror=tmp_path / "m")
    with pytest.raises(UserError) as caught:
        open_store(mirror=tmp_path / "m")
    assert caught.value.reason == "MirrorInUse"
    first.close()
    first.close()
    open_store(mirror=tmp_path / "m").fetch(["main"])


def test_a_folder_with_something_else_in_it_is_never_touched(tmp_path, open_store):
    (tmp_path / "home" / "thesis").mkdir(parents=True)
    (tmp_path / "home" / "config").write_text("mine")
    with pytest.raises(UserError) as caught:
        open_store(mirror=tmp_path / "home")
    assert caught.value.reason == "NotAMirror"
    assert sorted(path.name for path in (tmp_path / "home").iterdir()) == ["config", "thesis"]


def test_what_a_killed_owner_left_is_removed(remote, tmp_path, open_store):
    first = open_store(mirror=tmp_path / "m")
    tip = push_one(first, "tmp_x")
    first.close()
    mirror = tmp_path / "m"
    left = [
        "config.lock",
        "packed-refs.lock",
        "refs/remotes/origin/main.lock",
        "objects/pack/tmp_pack_x",
        "HEAD.lock",
    ]
    for name in left:
        (mirror / name).parent.mkdir(parents=True, exist_ok=True)
        (mirror / name).touch()
    store = open_store(mirror=mirror)
    assert store.tips() == {"tmp_x": tip}
    push_one(store, "tmp_x", content=b"2")
    assert not any((mirror / name).exists() for name in left)


def test_helpers_that_died_are_started_again(remote, open_store):
    store = open_store()
    tip = push_one(store)
    for helper in (store._reader._contents, store._reader._headers):
        helper.ask(b"\n", lambda output: output.readline())
        helper._process.kill()
        helper._process.wait()
    assert store.read_path(tip, "a") == b"1"
    assert len(store.diff(tip, tip)) == 0


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_the_mirror_stays_small_over_many_writes_and_re_roots(remote, tmp_path, open_store):
    store = open_store(mirror=tmp_path / "m", limits=Limits(packs=10, operations=60))
    tip, sizes = None, []
    for number in range(100):
        content = os.urandom(20_000)
        parent = None if number % 40 == 39 else tip
        at = NOW + timedelta(minutes=number)
        new = store.write(Draft({"noise": content}, f"Step {number}", BO, at, tip, parent))
        assert store.push("egs/status", new, tip) is Outcome.COMMITTED
        tip = new
        store.fetch(["egs/status"])
        sizes.append(size_of(tmp_path / "m"))
        assert len(list((tmp_path / "m" / "objects" / "pack").glob("*.pack"))) <= 20
    # 100 commits wrote 2 MB; at most 60 are held at once, and right after a re-root one.
    assert max(sizes) < 1_500_000
    assert max(sizes[39], sizes[79]) < 150_000
    assert store.read_path(tip, "noise") == content


def test_a_mirror_that_is_only_written_to_stays_small_too(tmp_path, open_store):
    store, tip = open_store(mirror=tmp_path / "m", limits=Limits(packs=5, operations=1000)), None
    for number in range(60):
        parent = None if number % 9 == 8 else tip
        new = store.write(Draft({"noise": os.urandom(20_000)}, f"Step {number}", BO, NOW, tip, parent))
        assert store.push("egs/status", new, tip) is Outcome.COMMITTED
        tip = new
    assert size_of(tmp_path / "m") < 500_000
    assert len(list((tmp_path / "m" / "objects" / "pack").glob("*.pack"))) <= 11


def test_a_readers_mirror_stays_small_too(remote, tmp_path, open_store):
    store = open_store(mirror=tmp_path / "m", limits=Limits(packs=10, operations=40))
    for number in range(85):
        repos.git(remote, "update-ref", "-d", "refs/heads/noise")
        repos.commit(remote, {"noise": os.urandom(20_000)}, "noise")
        assert "noise" in store.fetch(["noise"]), number
    assert size_of(tmp_path / "m") < 500_000


def test_a_git_that_hangs_is_ended(remote, tmp_path, open_store):
    first = open_store(mirror=tmp_path / "m")
    tip = push_one(first)
    first.close()
    hook = remote / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexec sleep 60\n")
    hook.chmod(0o755)
    store = open_store(mirror=tmp_path / "m", limits=Limits(remote=timedelta(seconds=0.3)))
    new = store.write(Draft({"a": b"2"}, "Change", BO, NOW, tip, tip))
    assert store.push("main", new, tip) is Outcome.UNKNOWN


@pytest.mark.parametrize(
    "harm",
    [
        pytest.param(lambda m: (m / "refs/remotes/origin/main").write_text(""), id="an empty ref"),
        pytest.param(
            lambda m: (m / "refs/remotes/origin/main").write_text("1" * 40 + "\n"), id="a lost commit"
        ),
        pytest.param(lambda m: (m / "config").write_text("[core"), id="half a configuration"),
        pytest.param(lambda m: (m / "HEAD").unlink(), id="no HEAD"),
        pytest.param(lambda m: [p.unlink() for p in (m / "objects/pack").iterdir()], id="no packs"),
    ],
)
def test_a_torn_mirror_is_made_anew(harm, remote, tmp_path, open_store):
    first = open_store(mirror=tmp_path / "m")
    push_one(first)
    first.close()
    harm(tmp_path / "m")
    store = open_store(mirror=tmp_path / "m")
    assert store.fetch(["main"]) == {"main": repos.tip(remote)}
    push_one(store, content=b"2")


def test_a_commit_that_is_kept_outlives_its_branch_and_the_repacking(remote, open_store, tmp_path):
    store = open_store(limits=Limits(packs=1, operations=1))
    old = push_one(store)
    assert store.keep(old)
    repos.git(remote, "update-ref", "refs/heads/main", f"{old}~1")
    for number in range(4):
        push_one(store, "other", content=b"%d" % number)
    assert store.fetch(["main"])["main"] != old
    assert store.commit(old).oid == old
