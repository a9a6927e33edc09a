"""Commits that we sign are signed for git as well, and stay put whatever the mirror's upkeep does (D11)."""

from __future__ import annotations

import subprocess
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.store.git.git_objects import parse_commit, split_signature, with_signature
from reconciler.store.git.git_store import GitStore
from reconciler.store.git.mirror import Limits
from reconciler.store.store_port import Draft, Outcome, Person, Sign, chain
from reconciler.trust.machines import signing
from reconciler.trust.sshsig import read_private_key
from tests.reconciler.store.conftest import BO, NOW, push_one
from tests.support import realkeys as keys
from tests.support import repos


@pytest.fixture
def key(tmp_path: Path) -> keys.Key:
    return keys.ssh_key(tmp_path, "controller")


@pytest.fixture
def sign(key: keys.Key) -> Sign:
    found = signing(read_private_key(key.private))
    assert found is not None
    return found


def signers(folder: Path, key: keys.Key) -> tuple[str, ...]:
    """Options with which git knows one signer."""
    file = folder / "allowed_signers"
    file.write_text(f"controller {key.public}\n")
    return ("-c", "gpg.format=ssh", "-c", f"gpg.ssh.allowedSignersFile={file}")


def verified(repo: Path, oid: str, *options: str) -> str:
    """What `git verify-commit` says; empty when it refuses."""
    done = subprocess.run(
        ["git", *options, "verify-commit", "--raw", oid],
        cwd=repo,
        env={**repos.ENVIRONMENT, "HOME": str(repo)},
        capture_output=True,
        check=False,
    )
    return done.stderr.decode() if done.returncode == 0 else ""


def test_git_finds_our_signatures_good(remote, tmp_path, key, sign):
    store = GitStore(str(remote), tmp_path / "mirror", sign=sign)
    try:
        tip = push_one(store)
    finally:
        store.close()
    assert repos.tip(remote) == tip
    assert 'Good "git" signature for controller' in verified(remote, tip, *signers(tmp_path, key))
    repos.git(remote, "fsck", "--strict")


def test_git_finds_every_signature_of_a_chain_good(remote, tmp_path, key, sign):
    """A7: fifty commits in one go, of all sizes, each as good for git as one that was written alone."""
    repos.git(remote, "config", "receive.fsckObjects", "true")
    store = GitStore(str(remote), tmp_path / "mirror", sign=sign)
    try:
        tip = store.fetch(["main"])["main"]
        drafts = [Draft({f"f{n}": b"%d" % n}, "x" * 3**n, BO, NOW) for n in range(10)]
        oids = store.write_all(chain(tip, drafts * 5))
        assert store.push("main", oids[-1], tip) is Outcome.COMMITTED
        assert len({store.commit(oid).payload for oid in oids}) == 50
    finally:
        store.close()
    for oid in (*oids[:10], oids[-1]):
        assert 'Good "git" signature for controller' in verified(remote, oid, *signers(tmp_path, key))
    repos.git(remote, "fsck", "--strict")


def test_git_refuses_them_under_another_key(remote, tmp_path, sign):
    store = GitStore(str(remote), tmp_path / "mirror", sign=sign)
    try:
        tip = push_one(store)
    finally:
        store.close()
    other = keys.ssh_key(tmp_path, "other")
    assert verified(remote, tip, *signers(tmp_path, other)) == ""


def test_a_strict_server_takes_them(remote, tmp_path, sign):
    repos.git(remote, "config", "receive.fsckObjects", "true")
    store = GitStore(str(remote), tmp_path / "mirror", sign=sign)
    try:
        assert push_one(store) == repos.tip(remote)
    finally:
        store.close()


def test_a_draft_that_is_not_pushed_yet_survives_the_upkeep(remote, tmp_path, sign):
    limits = replace(Limits(), packs=2, operations=3)
    store = GitStore(str(remote), tmp_path / "mirror", limits, sign=sign)
    try:
        tip = store.fetch(["main"])["main"]
        waiting = store.write(Draft({"a": b"waiting"}, "Change", BO, NOW, tip, tip))
        for number in range(8):
            push_one(store, "other", content=b"%d" % number)
            store.fetch(["main"])
        assert store.commit(waiting).signature
        assert store.push("main", waiting, tip) is Outcome.COMMITTED
        repos.git(remote, "fsck", "--strict")
        assert len(list((tmp_path / "mirror" / "objects").glob("??/*"))) <= 8, "loose objects are packed"
    finally:
        store.close()


HEAD = b"tree %s\nauthor A <a@x> 1 +0000\ncommitter A <a@x> 1 +0000" % (b"0" * 40)


@pytest.mark.parametrize(
    ("commit", "signature", "payload"),
    [
        pytest.param(HEAD + b"\n\nx\n", "", b"", id="an unsigned one"),
        pytest.param(
            HEAD + b"\ngpgsig A\n \n B\n\nx\n", "A\n\nB\n", HEAD + b"\n\nx\n", id="with an empty line"
        ),
        pytest.param(
            HEAD + b"\ngpgsig A\nencoding x\n\nx\n",
            "A\n",
            HEAD + b"\nencoding x\n\nx\n",
            id="before other headers",
        ),
        pytest.param(
            HEAD + b"\nmergetag object\n gpgsig B\ngpgsig A\n\nx\n",
            "A\n",
            HEAD + b"\nmergetag object\n gpgsig B\n\nx\n",
            id="with a tag that is signed too",
        ),
        pytest.param(
            HEAD + b"\ngpgsig-sha256 B\n C\ngpgsig A\n\nx\n",
            "A\n",
            HEAD + b"\n\nx\n",
            id="for two kinds of ids",
        ),
        pytest.param(HEAD + b"\ngpgsig A\ngpgsig B\n\nx\n", "", b"", id="with two, which is none"),
        pytest.param(HEAD + b"\ngpgsig\n A\n\nx\n", "", b"", id="with a header that is cut"),
        pytest.param(HEAD + b"\n\ngpgsig A\n\nx\n", "", b"", id="with one in its message, which is none"),
        pytest.param(HEAD + b"\ngpgsig A", "A\n", HEAD, id="without a message"),
        pytest.param(b"", "", b"", id="nothing at all"),
    ],
)
def test_a_signature_is_cut_out_as_git_cuts_it_out(commit, signature, payload):
    assert split_signature(commit) == (signature, payload)
    found = parse_commit("0" * 40, commit)
    assert (found.signature, found.payload) == (signature, payload)


@given(st.binary(), st.lists(st.text(alphabet="AB+/= -:", max_size=70), min_size=1, max_size=5))
def test_what_is_put_together_comes_apart_again(message, lines):
    payload, signature = HEAD + b"\n\n" + message, "\n".join(["-----BEGIN", *lines, "-----END", ""])
    assert split_signature(with_signature(payload, signature)) == (signature, payload)


@given(st.binary(), st.binary())
def test_no_commit_is_too_strange(head, message):
    for data in (
        head,
        HEAD + b"\n" + head + b"\n\n" + message,
        HEAD + b"\ngpgsig " + head + b"\n\n" + message,
    ):
        assert parse_commit("0" * 40, data).signature.isascii() or b"gpgsig " in data


@pytest.mark.parametrize(
    ("line", "name", "email", "at"),
    [
        pytest.param(
            "Bo Ek <bo@example.com> 1767225600 +0100", "Bo Ek", "bo@example.com", 1767225600, id="plain"
        ),
        pytest.param("Bo <bo@example.com>", "Bo", "bo@example.com", 0, id="no date"),
        pytest.param("<bo@example.com> 5 +0000", "", "bo@example.com", 5, id="no name"),
        pytest.param("A <b> <c@d> 5 +0000", "A <b>", "c@d", 5, id="a name with brackets"),
        pytest.param("A <B <c@d> 5 +0000", "A", "B <c@d", 5, id="a bracket in the mail"),
        pytest.param("A <c@d> soon", "A <c@d> soon", "", 0, id="no date of git's"),
        pytest.param("nobody", "nobody", "", 0, id="no mail"),
        pytest.param("> <", "> <", "", 0, id="brackets the other way"),
    ],
)
def test_who_a_commit_names(line: str, name: str, email: str, at: int) -> None:
    found = parse_commit("0" * 40, f"tree {'0' * 40}\nauthor {line}\ncommitter {line}\n\nx\n".encode())
    assert (found.author, found.at) == (Person(name, email), datetime.fromtimestamp(at, UTC))


@pytest.mark.parametrize("piece", ["<", "a <b> ", "> <", " "])
def test_a_line_of_any_length_that_names_somebody_is_read_at_once(piece: str) -> None:
    who = piece * (500_000 // len(piece))
    data = f"tree {'0' * 40}\nauthor {who}\ncommitter x <x> 1 +0000\n\nx\n".encode()
    before = time.process_time()
    found = parse_commit("0" * 40, data)
    assert time.process_time() - before < 1
    assert len(found.author.name) < 5000
