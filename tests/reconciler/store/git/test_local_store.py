"""A repository of this machine, read as it stands: clones, bare ones, and what a receive hook may see (A1)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from reconciler.store.git.local_store import LocalStore, quarantine
from reconciler.store.store_port import Draft, Entry, Person
from schemas.errors import Fault, UserError
from tests.reconciler.store.conftest import NOW
from tests.support import repos

Open = Callable[..., LocalStore]


@pytest.fixture
def local() -> Iterator[Open]:
    with ExitStack() as stack:

        def opened(git_dir: Path, variables: Mapping[str, str] | None = None) -> LocalStore:
            store = LocalStore(git_dir, variables)
            stack.callback(store.close)
            return store

        yield opened


@pytest.fixture
def clone(remote: Path, tmp_path: Path) -> Path:
    repos.commit(remote, {"a": "1"})
    repos.commit(remote, {"b": "1"}, "egs/status")
    repos.git(tmp_path, "clone", "--quiet", str(remote), "clone")
    return tmp_path / "clone"


def test_a_bare_repository_is_read(remote, local):
    first = repos.tip(remote)
    second = repos.commit(remote, {"a": "1"})
    store = local(remote)
    assert store.tips() == {"main": second} == store.fetch(["main", "egs/*"])
    assert [entry.path for entry in store.diff(first, second)] == ["a"]
    assert store.read_path(second, "a") == b"1"
    assert store.read(entry.oid for entry in store.diff(None, second) if entry.oid)
    assert store.sizes(entry.oid for entry in store.diff(first, second) if entry.oid)
    assert [commit.oid for commit in store.log(second, 5)] == [second, first]
    assert store.is_ancestor(first, second)
    assert store.alarms() == ()


def test_what_is_committed_meanwhile_is_seen(remote, local):
    store = local(remote)
    store.tips()
    new = repos.commit(remote, {"a": "1"})
    assert store.tips() == {"main": new}


def test_a_clone_has_the_branches_of_its_origin_and_its_own(clone, local):
    repos.git(clone, "checkout", "--quiet", "-b", "mine")
    (clone / "a").write_text("2")
    repos.git(clone, "commit", "--quiet", "--all", "--message=Mine")
    repos.git(clone, "branch", "--quiet", "--force", "main", "HEAD")
    tips = local(clone / ".git").tips()
    assert sorted(tips) == ["egs/status", "main", "mine"]
    assert tips["main"] == repos.git(clone, "rev-parse", "origin/main")
    assert tips["mine"] == repos.git(clone, "rev-parse", "HEAD")


def test_what_somebody_pushed_below_refs_remotes_means_nothing_on_a_server(remote, local):
    evil = repos.commit(remote, {"a": "evil"}, "evil")
    repos.git(remote, "update-ref", "refs/remotes/origin/main", evil)
    assert local(remote).tips()["main"] == repos.tip(remote)


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("HEAD", "HEAD"),
        ("main", "main"),
        ("origin/main", "origin/main"),
        ("refs/remotes/origin/main", "origin/main"),
        ("HEAD~1", "HEAD^"),
        ("HEAD^", "HEAD^"),
        ("v1.0", "HEAD"),
    ],
)
def test_a_commit_is_named_as_people_name_it(clone, local, name, same):
    repos.git(clone, "tag", "--annotate", "--message=x", "v1.0")
    assert local(clone / ".git").commit_of(name) == repos.git(clone, "rev-parse", same)


def test_an_id_names_itself(clone, local):
    oid = repos.git(clone, "rev-parse", "HEAD")
    store = local(clone / ".git")
    assert store.commit_of(oid) == oid == store.commit_of(oid[:10])


@pytest.mark.parametrize(
    "name",
    [
        "",
        "nothing",
        "-h",
        "--all",
        "main..v1",
        "main...v1",
        ":/x",
        "HEAD:a",
        "HEAD^{/x}",
        "@{1}",
        "a b",
        "f" * 40,
        "main\n",
    ],
)
def test_what_names_no_commit_is_none(clone, local, name):
    assert local(clone / ".git").commit_of(name) is None


def test_where_two_histories_part(remote, local):
    first = repos.tip(remote)
    side = repos.commit(remote, {"a": "1"}, "main")
    repos.git(remote, "branch", "side", first)
    other = repos.commit(remote, {"b": "1"}, "side")
    lone = repos.commit(remote, {"c": "1"}, "lone")
    store = local(remote)
    assert store.merge_bases(side, other) == [first]
    assert store.merge_bases(side, first) == [first]
    assert store.merge_bases(side, lone) == []
    with pytest.raises(Fault):
        store.merge_bases(side, "1" * 40)


def test_nothing_is_written(remote, local):
    store, before = local(remote), repos.tip(remote)
    with pytest.raises(UserError) as caught:
        store.write(Draft({"a": b"1"}, "x", Person("a", "b"), NOW))
    assert caught.value.reason == "ReadOnly"
    with pytest.raises(UserError):
        store.push("main", before, before)
    with pytest.raises(UserError):
        store.push("other", before, None)
    assert store.tips() == {"main": before}


def test_nothing_is_fetched_that_a_clone_left_out(remote, tmp_path, local):
    blob = repos.git(remote, "rev-parse", "main:project.yaml")
    repos.git(remote, "config", "uploadpack.allowFilter", "true")
    options = ("--quiet", "--no-checkout", "--filter=blob:none", f"file://{remote}", "clone")
    repos.git(tmp_path, "clone", *options)
    store = local(tmp_path / "clone" / ".git")
    with pytest.raises(Fault) as caught:
        store.read([blob])
    assert caught.value.reason == "CorruptObjects"
    assert store.tips()["main"] == repos.tip(remote)


def test_a_replaced_object_is_read_as_it_is(remote, local):
    first = repos.tip(remote)
    second = repos.commit(remote, {"a": "1"})
    repos.git(remote, "replace", second, first)
    assert local(remote).commit(second).parents == (first,)


# -- a receive hook --------------------------------------------------------------------------------------------


def test_only_what_leads_to_the_pushed_objects_is_taken_from_the_environment():
    environment = {
        "GIT_OBJECT_DIRECTORY": "/q",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": "/o",
        "GIT_QUARANTINE_PATH": "/q",
        "GIT_DIR": ".",
        "GIT_PUSH_OPTION_0": "x",
        "GIT_CONFIG_COUNT": "1",
        "GIT_SSH_COMMAND": "evil",
        "PATH": "/bin",
    }
    assert set(quarantine(environment)) == {
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_QUARANTINE_PATH",
    }
    assert quarantine({"GIT_OBJECT_DIRECTORY": ""}) == {}


HOOK = """#!/bin/sh
env | grep ^GIT_ > {seen}
cat > {pushed}
cp -r . {copy}
exit 1
"""


def test_a_push_that_is_not_accepted_yet_can_be_read(remote, clone, tmp_path, local):
    """The hook keeps the server as it is in the middle of a push, which it refuses."""
    seen, pushed, copy = tmp_path / "seen", tmp_path / "pushed", tmp_path / "copy"
    hook = remote / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(HOOK.format(seen=seen, pushed=pushed, copy=copy))
    hook.chmod(0o755)
    (clone / "new").write_text("new")
    repos.git(clone, "add", "new")
    repos.git(clone, "commit", "--quiet", "--message=New")
    with pytest.raises(AssertionError, match="pre-receive hook declined"):
        repos.git(clone, "push", "--quiet", "origin", "HEAD:main")
    environment = dict(line.split("=", 1) for line in seen.read_text().splitlines())
    moved = {name: value.replace(str(remote), str(copy)) for name, value in environment.items()}
    old, new, _ = pushed.read_text().split()
    assert quarantine(moved)
    store = local(copy, quarantine(moved))
    assert store.diff(old, new) == [Entry("new", repos.git(clone, "rev-parse", "HEAD:new"))]
    assert store.is_ancestor(old, new)
    with pytest.raises(Fault):
        local(copy).commit(new)


def test_nothing_else_of_the_environment_reaches_git(remote, local, monkeypatch):
    for name, value in {
        "GIT_DIR": "/nowhere",
        "GIT_OBJECT_DIRECTORY": "/nowhere",
        "GIT_CONFIG_COUNT": "x",
    }.items():
        monkeypatch.setitem(os.environ, name, value)
    assert local(remote).tips() == {"main": repos.tip(remote)}
