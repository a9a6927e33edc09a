"""Signatures of commits and of texts, by every kind of key, as the real git and `ssh-keygen` make them (B10)."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from reconciler.store.git.local_store import LocalStore
from reconciler.store.store_port import Commit
from reconciler.trust import signature_programs
from reconciler.trust.signature_check import SystemVerifier
from reconciler.trust.sshsig import Sshsig, canonical_key, parse
from schemas.errors import Fault
from tests.support import realkeys as keys
from tests.support import repos
from tests.support.realkeys import Key, signed_by

MESSAGE = b"a message\n"


@pytest.fixture(
    scope="session", params=["ed25519", "ecdsa-256", "ecdsa-384", "ecdsa-521", "rsa-2048", "rsa-3072"]
)
def any_key(request: pytest.FixtureRequest, key_folder: Path) -> Key:
    kind, _, bits = request.param.partition("-")
    return keys.ssh_key(key_folder, f"any-{request.param}", kind, int(bits) if bits else None)


def test_every_kind_of_key_counts(any_key):
    checks = SystemVerifier()
    signature = keys.ssh_sign(any_key, "git", MESSAGE)
    assert checks.key_of("git", MESSAGE, signature) == any_key.public
    assert checks.key_of("git", MESSAGE + b"x", signature) is None, "of another message"
    assert checks.key_of("egs-approval", MESSAGE, signature) is None, "for another purpose"


def packed(*fields: bytes) -> bytes:
    return b"".join(len(field).to_bytes(4, "big") + field for field in fields)


def on_a_token(namespace: str, message: bytes, kind: str) -> tuple[str, str]:
    """A key as a FIDO token has it, and its signature; made here, for no token is at hand."""
    kind_bytes, application, flags = f"sk-{kind}@openssh.com".encode(), b"ssh:", b"\x01\x00\x00\x00\x07"
    digest = hashlib.sha512(message).digest()
    covered = b"SSHSIG" + packed(namespace.encode(), b"", b"sha512", digest)
    told = hashlib.sha256(application).digest() + flags + hashlib.sha256(covered).digest()
    if kind == "ssh-ed25519":
        key = ed25519.Ed25519PrivateKey.generate()
        raw = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        blob, signature = packed(kind_bytes, raw, application), key.sign(told)
    else:
        curve = ec.generate_private_key(ec.SECP256R1())
        raw = curve.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        blob = packed(kind_bytes, b"nistp256", raw, application)
        r, s = decode_dss_signature(curve.sign(told, ec.ECDSA(SHA256())))
        signature = packed(*(mpint(number) for number in (r, s)))
    inner = packed(kind_bytes, signature) + flags
    public = f"{kind_bytes.decode()} {base64.b64encode(blob).decode()}"
    return public, Sshsig(public, namespace, "sha512", kind_bytes.decode(), inner).armoured()


def mpint(number: int) -> bytes:
    return number.to_bytes(number.bit_length() // 8 + 1, "big")


@pytest.mark.parametrize("kind", ["ssh-ed25519", "ecdsa-sha2-nistp256"])
def test_a_key_on_a_token_counts(kind):
    public, signature = on_a_token("git", MESSAGE, kind)
    assert canonical_key(public) == public
    assert SystemVerifier().key_of("git", MESSAGE, signature) == public
    assert SystemVerifier().key_of("git", MESSAGE + b"x", signature) is None
    assert SystemVerifier().key_of("egs-approval", MESSAGE, signature) is None


def test_a_signature_under_another_key_is_none(any_key, ada_key, rsa_key):
    found = parse(keys.ssh_sign(any_key, "git", MESSAGE))
    assert found is not None
    for other in (ada_key, rsa_key):
        assert SystemVerifier().key_of("git", MESSAGE, replace(found, key=other.public).armoured()) is None


def test_a_signature_for_another_purpose_cannot_be_renamed(any_key):
    found = parse(keys.ssh_sign(any_key, "egs-approval", MESSAGE))
    assert found is not None
    assert SystemVerifier().key_of("git", MESSAGE, replace(found, namespace="git").armoured()) is None


def test_a_truncated_signature_is_none(any_key):
    signature = keys.ssh_sign(any_key, "git", MESSAGE)
    lines = signature.splitlines(keepends=True)
    assert SystemVerifier().key_of("git", MESSAGE, "".join(lines[:2] + lines[3:])) is None
    assert SystemVerifier().key_of("git", MESSAGE, signature[:-40]) is None


@given(st.text(), st.binary(), st.sampled_from(["git", "egs-approval"]))
def test_nothing_is_too_strange(signature, message, namespace):
    checks = SystemVerifier()
    for text in (signature, f"-----BEGIN PGP SIGNATURE-----\n{signature}"):
        assert checks.key_of(namespace, message, text) is None


def test_without_ssh_keygen_only_ed25519_counts(ada_key, rsa_key, tmp_path, monkeypatch, caplog):
    good, other = (keys.ssh_sign(key, "git", MESSAGE) for key in (ada_key, rsa_key))
    monkeypatch.setenv("PATH", str(tmp_path))
    checks = SystemVerifier()
    assert checks.key_of("git", MESSAGE, good) == ada_key.public
    assert checks.key_of("git", MESSAGE, other) is None
    assert checks.key_of("git", MESSAGE, other) is None
    assert caplog.text.count("ssh-keygen is missing") == 1


def test_a_program_that_hangs_is_a_fault_and_not_a_bad_signature(rsa_key, tmp_path, monkeypatch):
    signature = keys.ssh_sign(rsa_key, "git", MESSAGE)
    slow = tmp_path / "ssh-keygen"
    slow.write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(signature_programs, "LIMIT_S", 0.1)
    with pytest.raises(Fault) as caught:
        SystemVerifier().key_of("git", MESSAGE, signature)
    assert caught.value.reason == "VerifierTimedOut"


def test_the_programs_see_nothing_of_the_callers_environment(rsa_key, tmp_path, monkeypatch):
    signature = keys.ssh_sign(rsa_key, "git", MESSAGE)
    seen = tmp_path / "seen"
    spy = tmp_path / "ssh-keygen"
    spy.write_text(f"#!/bin/sh\nenv > {seen}\nexit 1\n")
    spy.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/somewhere")
    monkeypatch.setenv("LD_PRELOAD_X", "evil")
    SystemVerifier().key_of("git", MESSAGE, signature)
    names = {line.partition("=")[0] for line in seen.read_text().splitlines()}
    assert names <= {"PATH", "HOME", "LC_ALL", "PWD", "OLDPWD", "SHLVL", "_"}


# -- commits, as git itself signs them -------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A work tree with one unsigned commit."""
    folder = tmp_path / "tree"
    folder.mkdir()
    repos.git(folder, "init", "--quiet", "--initial-branch=main")
    (folder / "a").write_text("1\n")
    repos.git(folder, "add", "a")
    repos.git(folder, "commit", "--quiet", "--message=First")
    return folder


def head(tree: Path, name: str = "HEAD") -> Commit:
    store = LocalStore(tree / ".git")
    try:
        oid = store.commit_of(name)
        assert oid is not None
        return store.commit(oid)
    finally:
        store.close()


def change(
    tree: Path, path: str, *options: str, message: str = "Change\n\nOn-Behalf-Of: Bo <bo@x.com>"
) -> None:
    (tree / path).write_text(message)
    repos.git(tree, "add", path)
    repos.git(tree, *options, "commit", "--quiet", "--gpg-sign", f"--message={message}")


def key_of(commit: Commit, folder: Path | None = None) -> str | None:
    return SystemVerifier(folder).key_of("git", commit.payload, commit.signature)


def test_a_commit_that_git_signed_with_ssh(tree, any_key):
    change(tree, "b", *signed_by(any_key))
    assert key_of(head(tree)) == any_key.public
    assert head(tree).trailers == {"On-Behalf-Of": "Bo <bo@x.com>"}


def test_a_commit_that_git_signed_with_openpgp(tree, openpgp, tmp_path):
    (tmp_path / "trust" / "gpg").mkdir(parents=True)
    (tmp_path / "trust" / "gpg" / "ada.asc").write_bytes(openpgp.exported())
    program = tmp_path / "gpg-of-ada"
    program.write_text(f'#!/bin/sh\nexec gpg --homedir {openpgp.home} --batch --no-tty "$@"\n')
    program.chmod(0o755)
    change(tree, "b", "-c", f"gpg.program={program}", "-c", f"user.signingkey={openpgp.fingerprint}")
    assert key_of(head(tree), tmp_path / "trust") == f"gpg:{openpgp.fingerprint}"


def test_a_merge_that_git_signed(tree, ada_key, bo_key):
    repos.git(tree, "checkout", "--quiet", "-b", "side")
    change(tree, "b", *signed_by(bo_key))
    repos.git(tree, "checkout", "--quiet", "main")
    repos.git(
        tree, *signed_by(ada_key), "merge", "--quiet", "--no-ff", "--gpg-sign", "--message=Merge", "side"
    )
    merge = head(tree)
    assert len(merge.parents) == 2
    assert key_of(merge) == ada_key.public
    assert key_of(head(tree, "HEAD^2")) == bo_key.public


def test_a_merge_of_a_signed_tag_keeps_both_apart(tree, ada_key, bo_key):
    repos.git(tree, "checkout", "--quiet", "-b", "side")
    change(tree, "b", *signed_by(bo_key))
    repos.git(tree, *signed_by(bo_key), "tag", "--sign", "--message=Tag", "v1")
    repos.git(tree, "checkout", "--quiet", "main")
    for sign in ((), ("--gpg-sign",)):
        repos.git(tree, "reset", "--quiet", "--hard", "HEAD~1" if sign else "HEAD")
        repos.git(tree, *signed_by(ada_key), "merge", "--quiet", "--no-ff", *sign, "--message=Merge", "v1")
        assert b"mergetag" in repos.git(tree, "cat-file", "commit", "HEAD").encode()
        assert key_of(head(tree)) == (ada_key.public if sign else None)


def test_an_unsigned_commit_has_nothing_to_check(tree):
    assert (head(tree).signature, head(tree).payload) == ("", b"")
    assert key_of(head(tree)) is None


def rewritten(tree: Path, edit: Callable[[bytes], bytes]) -> Commit:
    data = repos.git(tree, "cat-file", "commit", "HEAD").encode() + b"\n"
    oid = repos.write_object(tree, "commit", edit(data))
    return head(tree, oid)


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(lambda data: data.replace(b"author Ada", b"author Eve"), id="another author"),
        pytest.param(lambda data: data.replace(b"\n\nChange", b"\n\nOther"), id="another message"),
        pytest.param(lambda data: data + b"\nOn-Behalf-Of: Eve <eve@x.com>\n", id="another trailer"),
        pytest.param(
            lambda data: data.replace(b"\ncommitter", b"\nparent " + b"0" * 40 + b"\ncommitter"),
            id="a parent",
        ),
        pytest.param(
            lambda data: data.replace(b"\n\nChange", b"\nencoding latin-1\n\nChange"), id="another header"
        ),
        pytest.param(lambda data: data.replace(b"\ngpgsig ", b"\ngpgsig x\ngpgsig "), id="two signatures"),
        pytest.param(lambda data: data.replace(b"\ngpgsig ", b"\nGPGSIG "), id="a header of another name"),
        pytest.param(
            lambda data: data.replace(b" -----END SSH", b"-----END SSH"), id="a signature that is cut"
        ),
    ],
)
def test_a_commit_that_was_changed_after_it_was_signed_is_nobodys(tree, ada_key, edit):
    change(tree, "b", *signed_by(ada_key))
    assert key_of(rewritten(tree, lambda data: data)) == ada_key.public
    assert key_of(rewritten(tree, edit)) is None


def test_what_git_itself_leaves_out_of_a_signature_says_nothing_here(tree, ada_key):
    change(tree, "b", *signed_by(ada_key))
    edited = rewritten(
        tree, lambda data: data.replace(b"\ngpgsig ", b"\ngpgsig-sha256 x\n parent y\ngpgsig ")
    )
    assert key_of(edited) == ada_key.public
    assert edited.parents == head(tree).parents
