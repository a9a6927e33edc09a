"""The Git driver among hostile things: environments, names, objects, credentials, dead owners."""

from __future__ import annotations

import base64
import os
import subprocess
from pathlib import Path

import pytest

from reconciler.store.git.git_objects import blob_oid
from reconciler.store.git.git_reader import MAX_OBJECT
from reconciler.store.git.git_store import GitStore
from reconciler.store.git.mirror import Limits
from reconciler.store.git.remote_address import parse, scrubbed
from reconciler.store.store_port import Draft, Outcome
from schemas.errors import Fault, UserError
from tests.reconciler.store.conftest import BO, NOW, push_one
from tests.support import repos

# -- the environment -----------------------------------------------------------------------------------------


@pytest.fixture
def hostile(monkeypatch, tmp_path) -> Path:
    """Everything that would make git do something else; gives the file that appears when any of it works."""
    proof = tmp_path / "proof"
    script = tmp_path / "evil" / "script"
    script.parent.mkdir()
    script.write_text(f"#!/bin/sh\necho run >> {proof}\nexit 1\n")
    script.chmod(0o755)
    for name in ("git", "git-upload-pack", "git-remote-http"):
        (script.parent / name).symlink_to(script)
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        f'[core]\n\thooksPath = {script.parent}\n\tfsmonitor = {script}\n[alias]\n\tfetch = "!{script}"\n'
        f'[url "/nonexistent/"]\n\tinsteadOf = "/"\n[uploadpack]\n\tpackObjectsHook = {script}\n'
    )
    other = repos.bare(tmp_path / "other.git", {"other": "x"})
    for key, value in {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home),
        "GIT_DIR": str(other),
        "GIT_COMMON_DIR": str(other),
        "GIT_WORK_TREE": str(tmp_path),
        "GIT_INDEX_FILE": str(tmp_path / "index"),
        "GIT_OBJECT_DIRECTORY": str(other / "objects"),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(other / "objects"),
        "GIT_NAMESPACE": "elsewhere",
        "GIT_EXEC_PATH": str(script.parent),
        "GIT_TEMPLATE_DIR": str(script.parent),
        "GIT_SSH_COMMAND": str(script),
        "GIT_SSH": str(script),
        "GIT_ASKPASS": str(script),
        "GIT_PROXY_COMMAND": str(script),
        "GIT_EXTERNAL_DIFF": str(script),
        "GIT_PAGER": str(script),
        "GIT_EDITOR": str(script),
        "GIT_PYTHON_GIT_EXECUTABLE": str(script),
        "GIT_PYTHON_REFRESH": "error",
        "GIT_CONFIG": str(home / ".gitconfig"),
        "GIT_CONFIG_GLOBAL": str(home / ".gitconfig"),
        "GIT_CONFIG_SYSTEM": str(home / ".gitconfig"),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": str(script),
        "GIT_CONFIG_PARAMETERS": f"'core.hooksPath={script.parent}' 'url./nonexistent/.insteadOf=/'",
        "GIT_REPLACE_REF_BASE": "refs/heads/",
        "GIT_GRAFT_FILE": str(home / ".gitconfig"),
        "GIT_SHALLOW_FILE": str(home / ".gitconfig"),
        "GIT_TRACE": str(proof),
        "GIT_TRACE2": str(proof),
        "GIT_DEFAULT_HASH": "sha256",
        "GIT_ALLOW_PROTOCOL": "ext",
        "GIT_PROTOCOL_FROM_USER": "0",
        "GIT_QUARANTINE_PATH": str(tmp_path),
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_FLUSH": "0",
    }.items():
        monkeypatch.setenv(key, value)
    return proof


def test_no_variable_of_the_caller_reaches_git(hostile, remote, open_store):
    before = dict(os.environ)
    store = open_store()
    new = push_one(store)
    assert store.fetch(["main"]) == {"main": new}
    assert [entry.path for entry in store.diff(None, new)] == ["a", "project.yaml"]
    assert store.log(new, 5)[-1].parents == ()
    assert not hostile.exists()
    assert dict(os.environ) == before
    assert repos.tip(remote) == new


def test_a_first_import_of_gitpython_runs_no_program_of_the_callers(hostile, remote, tmp_path):
    """A process of its own, since GitPython runs git only when it is imported first."""
    program = (
        "import sys; from pathlib import Path; from reconciler.store.git.git_store import GitStore\n"
        "store = GitStore(sys.argv[1], Path(sys.argv[2])); print(store.fetch(['main'])['main']); store.close()"
    )
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(
        [os.sys.executable, "-c", program, str(remote), str(tmp_path / "m")],
        cwd=root, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.strip() == repos.tip(remote), done.stderr
    assert not hostile.exists()


def test_replace_refs_are_not_followed(remote, tmp_path, open_store):
    honest = repos.tip(remote)
    forged = repos.commit(remote, {"project.yaml": "forged"}, "forged")
    store = open_store(mirror=tmp_path / "m")
    store.fetch(["main", "forged"])
    repos.git(tmp_path / "m", "update-ref", f"refs/replace/{honest}", forged)
    assert store.read_path(honest, "project.yaml") == b"kind: Project\n"
    assert [entry.oid for entry in store.diff(None, honest)] == [blob_oid(b"kind: Project\n")]


# -- remotes and credentials ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "remote",
    [
        "ext::sh -c touch% /tmp/x", "fd::17", "git://host/x", "ftp://host/x", "host:x/y.git",
        "ssh://bo:pass@host/x", "ssh://host", "ssh://-oProxyCommand=x/y", "ssh://-l@host/x", "ssh://host:x/y",
        "git@-oProxyCommand=x:y", "git@host:-x", "git@host:", "bo:pass@host:x.git", "bo@host:a@b",
        "-oProxyCommand=x:y", "http://", "https:///x", "", " ", "http://host/x?y=z",
        "https://bo:pa/ss@host/x", "/tmp/x\ny", "javascript://x",
    ],
)  # fmt: skip
def test_other_transports_are_refused(remote, tmp_path):
    with pytest.raises(UserError) as caught:
        GitStore(remote, tmp_path / "mirror")
    assert caught.value.reason == "UnsupportedRemote"


@pytest.mark.parametrize(
    "login", ["bo:s3cr3t-t0ken", "bo:s3cr3t-t0ken%40%2Fx", "s3cr3t-t0ken", "x-token:s3cr3t-t0ken@more"]
)
def test_credentials_stand_in_no_message_file_or_representation(login, tmp_path):
    with repos.serve(tmp_path) as url:
        store = GitStore(url.replace("://", f"://{login}@") + "/missing.git", tmp_path / "mirror")
    with pytest.raises(Fault) as caught:
        store.fetch(["main"])
    new = store.write(Draft({"a": b"1"}, "Change", BO, NOW))
    assert store.push("main", new, None) is Outcome.UNKNOWN
    store.close()
    said = str(caught.value) + repr(parse(f"http://{login}@host/x"))
    files = [path.read_bytes() for path in (tmp_path / "mirror").rglob("*") if path.is_file()]
    assert "s3cr3t" not in said
    assert not any(b"s3cr3t" in content for content in files)


def test_texts_are_scrubbed_of_anybodys_credentials():
    address = parse("https://bo:pa%40ss%2Fword@host/x.git")
    token = base64.b64encode(b"bo:pa@ss/word").decode()
    dirty = f"https://eve:hunter2@other/y, https://bo:pa@ss/word@host/x: sent Basic {token} for pa@ss/word"
    assert address.url == "https://host/x.git"
    assert (
        scrubbed(dirty, address.secrets) == "https://***@other/y, https://***@host/x: sent Basic *** for ***"
    )


def test_credentials_open_a_remote_that_asks_for_them(remote, tmp_path, open_store):
    with repos.serve(remote.parent, login="bo:s3cr3t t0ken") as url:
        with pytest.raises(Fault):
            open_store(f"{url}/remote.git").fetch(["main"])
        store = open_store(url.replace("://", "://bo:s3cr3t%20t0ken@") + "/remote.git")
        assert push_one(store) == repos.tip(remote)


def test_a_mirror_is_of_one_remote(remote, tmp_path, open_store):
    open_store(mirror=tmp_path / "m").close()
    other = repos.bare(tmp_path / "other.git")
    with pytest.raises(UserError) as caught:
        GitStore(str(other), tmp_path / "m")
    assert caught.value.reason == "MirrorInUse"


# -- objects made by strangers -------------------------------------------------------------------------------


def bad_tree(remote: Path, name: bytes, mode="100644") -> str:
    blob = repos.write_object(remote, "blob", b"x")
    inner = repos.write_object(remote, "tree", repos.tree_entry("100644", b"x", blob))
    entry = repos.tree_entry(mode, name, inner if mode == "40000" else blob)
    return repos.write_object(remote, "tree", entry)


BAD_TREES = {
    "a folder above": lambda remote: bad_tree(remote, b"..", "40000"),
    "a git folder": lambda remote: bad_tree(remote, b".git", "40000"),
    "a git folder in capitals": lambda remote: bad_tree(remote, b".GIT", "40000"),
    "a short git folder": lambda remote: bad_tree(remote, b"git~1", "40000"),
    "a path in a name": lambda remote: bad_tree(remote, b"../../etc/passwd"),
    "an absolute path": lambda remote: bad_tree(remote, b"/etc/cron.d/x"),
    "one name twice": lambda remote: repos.write_object(
        remote, "tree", repos.tree_entry("100644", b"a", repos.write_object(remote, "blob", b"1")) * 2
    ),
    "half a tree": lambda remote: repos.write_object(remote, "tree", b"100644 a\0\x01\x02"),
}


@pytest.mark.parametrize("make", BAD_TREES.values(), ids=BAD_TREES.keys())
def test_a_bad_tree_leaves_its_branch_where_it_was_and_others_go_on(make, remote, tmp_path, open_store):
    good = repos.commit(remote, {"a": "1"}, "egs/agents/east/bad")
    store = open_store(limits=Limits(retry_refused=1))
    store.fetch(["main", "egs/agents/*/*"])
    moved = repos.commit(remote, {"a": "2"}, "main")
    bad = repos.commit_tree(remote, make(remote), "egs/agents/east/bad")
    for _ in range(3):  # a second fetch must not take what the first one refused for known
        tips = store.fetch(["main", "egs/agents/*/*"])
        assert tips == {"main": moved, "egs/agents/east/bad": good}
        (alarm,) = store.alarms()
        assert alarm.startswith(f"branch egs/agents/east/bad stays at {good[:12]}")
    with pytest.raises(Fault):
        store.commit(bad)
    # A refused pack would otherwise stay for good, as large as its sender liked.
    assert not list(tmp_path.glob("mirror-0/objects/**/tmp_*"))
    repaired = repos.commit_tree(remote, repos.git(remote, "rev-parse", "main^{tree}"), "egs/agents/east/bad")
    assert store.fetch(["egs/agents/*/*"]) == {"egs/agents/east/bad": repaired}
    assert store.alarms() == []


def test_a_branch_that_was_never_good_is_not_read_until_it_is(remote, open_store):
    repos.commit_tree(remote, bad_tree(remote, b".."), "bad")
    store = open_store(limits=Limits(retry_refused=2))
    assert list(store.fetch(["main", "bad"])) == ["main"]
    assert store.alarms()[0].startswith("branch bad is not read")
    repos.git(remote, "branch", "-D", "bad")
    assert list(store.fetch(["main", "bad"])) == ["main"]
    assert store.alarms() == []


def test_a_refused_branch_costs_a_download_only_now_and_then(remote, open_store, monkeypatch):
    repos.commit_tree(remote, bad_tree(remote, b".."), "bad")
    store = open_store(limits=Limits(retry_refused=5))
    store.fetch(["main", "bad"])
    seen = []
    talk = store._git.talk
    monkeypatch.setattr(store._git, "talk", lambda args, *rest: (seen.append(args[0]), talk(args, *rest))[1])
    for _ in range(4):
        store.fetch(["main", "bad"])
    assert seen == ["ls-remote"] * 4
    store.fetch(["main", "bad"])
    assert "fetch" in seen


def test_odd_modes_and_names_are_handed_out_as_they_are(remote, open_store):
    blob = repos.write_object(remote, "blob", b"/etc/passwd")
    entries = [
        ("100755", b"a-program"), ("120000", b"b-link"), ("160000", b"c-module"),
        ("100644", b"d\nline"), ("100644", b"e-\xff\xfe"), ("100644", "f-\u202e".encode()),
    ]  # fmt: skip
    module = repos.tip(remote)
    data = b"".join(repos.tree_entry(m, n, module if m == "160000" else blob) for m, n in entries)
    old = repos.commit_tree(remote, repos.write_object(remote, "tree", b""), "odd")
    store = open_store()
    store.fetch(["odd"])
    new = repos.commit_tree(remote, repos.write_object(remote, "tree", data), "odd")
    store.fetch(["odd"])
    want = [
        ("a-program", 0o100755), ("b-link", 0o120000), ("c-module", 0o160000),
        ("d\nline", 0o100644), ("e-\udcff\udcfe", 0o100644), ("f-\u202e", 0o100644),
    ]  # fmt: skip
    assert [(entry.path, entry.mode) for entry in store.diff(None, new)] == want
    assert [(entry.path, entry.mode) for entry in store.diff(old, new)] == want
    assert store.alarms() == []
    # A link is never followed, nor read as if it were the file.
    assert store.read_path(new, "b-link") is None
    assert store.read_path(new, "c-module") is None
    assert store.read_path(new, "a-program") == b"/etc/passwd"


def test_dates_beyond_the_calendar_are_brought_back_into_it(remote, open_store):
    tree = repos.git(remote, "rev-parse", "main^{tree}")
    who = b"E <e@x> 99999999999999 +0000"
    data = b"tree %s\nauthor %s\ncommitter %s\n\nx" % (tree.encode(), who, who)
    oid = repos.write_object(remote, "commit", data)
    (remote / "refs/heads/late").write_text(oid + "\n")
    store = open_store()
    store.fetch(["late"])
    assert store.commit(oid).at.year == 9999


def test_sizes_are_known_before_anything_is_read(remote, open_store):
    new = repos.commit(remote, {"big": b"x" * 5_000_000})
    store = open_store()
    store.fetch(["main"])
    big = {entry.path: entry.oid for entry in store.diff(None, new)}["big"]
    assert store.sizes([big]) == {big: 5_000_000}


def test_hooks_in_the_mirror_are_not_run(remote, open_store, tmp_path):
    store = open_store(mirror=tmp_path / "m")
    proof = tmp_path / "proof"
    for name in (
        "pre-push",
        "reference-transaction",
        "post-index-change",
        "fsmonitor-watchman",
        "pre-auto-gc",
    ):
        hook = tmp_path / "m" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\necho {name} >> {proof}\n")
        hook.chmod(0o755)
    push_one(store)
    assert not proof.exists()


def test_what_is_larger_than_anything_honest_is_never_read_whole(remote, open_store):
    """Compressed it is a thousandth of that: whoever can push can make us hold it."""
    new = repos.commit(remote, {"report.yaml": bytes(MAX_OBJECT[b"blob"] + 1)})
    who = b"E <e@example.com> 1767225600 +0000"
    tree = repos.git(remote, "rev-parse", "main^{tree}").encode()
    head = b"tree %s\nauthor %s\ncommitter %s\n\n" % (tree, who, who)
    long = repos.write_object(remote, "commit", head + b"x" * MAX_OBJECT[b"commit"])
    (remote / "refs/heads/long").write_text(long + "\n")
    store = open_store()
    store.fetch(["main", "long"])
    for read in (lambda: store.read_path(new, "report.yaml"), lambda: store.commit(long)):
        with pytest.raises(Fault) as fault:
            read()
        assert fault.value.reason == "TooLarge"
    assert store.read_path(new, "project.yaml") == b"kind: Project\n"
