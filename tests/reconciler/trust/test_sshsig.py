"""SSH signatures as the real `ssh-keygen` makes and checks them, and hostile ones (B10)."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from reconciler.trust.sshsig import (
    BEGIN,
    END,
    LONGEST,
    PrivateKey,
    canonical_key,
    is_ed25519_signature,
    parse,
    read_private_key,
)
from schemas.errors import UserError
from tests.support import realkeys as keys

MESSAGE = b"tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n\nHello\n"


def unpacked(armoured: str) -> bytes:
    return base64.b64decode("".join(armoured.splitlines()[1:-1]))


def armoured(blob: bytes) -> str:
    return f"{BEGIN}\n{base64.b64encode(blob).decode()}\n{END}\n"


def packed(*fields: bytes) -> bytes:
    return b"".join(len(field).to_bytes(4, "big") + field for field in fields)


def ed25519(raw: bytes) -> bytes:
    return packed(b"ssh-ed25519", raw)


def sealed(*fields: bytes, version: int = 1, after: bytes = b"") -> str:
    return armoured(b"SSHSIG" + version.to_bytes(4, "big") + packed(*fields) + after)


KEY = Ed25519PrivateKey.from_private_bytes(b"k" * 32)
PUBLIC = KEY.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
SIGNED = unpacked(PrivateKey(PUBLIC, KEY).sign("git", MESSAGE))
GOOD = (ed25519(b"k" * 32), b"git", b"", b"sha512", ed25519(b"s" * 64))


def test_what_we_sign_is_what_ssh_keygen_signs(ada_key):
    ours = read_private_key(ada_key.private).sign("git", MESSAGE)
    assert ours == keys.ssh_sign(ada_key, "git", MESSAGE), "ed25519 leaves no choice: the same bytes"


def test_ssh_keygen_finds_ours_good(ada_key, tmp_path):
    file = tmp_path / "signature"
    file.write_text(read_private_key(ada_key.private).sign("egs-approval", MESSAGE))
    keys.run(["ssh-keygen", "-Y", "check-novalidate", "-n", "egs-approval", "-s", str(file)], MESSAGE)


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_every_kind_of_key_is_read_and_written_back(tmp_path, kind):
    key = keys.ssh_key(tmp_path, kind=kind, bits=2048 if kind == "rsa" else None)
    text = keys.ssh_sign(key, "git", MESSAGE)
    found = parse(text)
    assert found is not None
    assert (found.key, found.namespace) == (key.public, "git")
    assert found.armoured() == text
    assert is_ed25519_signature(found, MESSAGE) is (kind == "ed25519")


def test_a_good_signature_is_of_one_message_one_purpose_and_one_key(ada_key, bo_key):
    found = parse(keys.ssh_sign(ada_key, "git", MESSAGE))
    assert found is not None
    assert is_ed25519_signature(found, MESSAGE)
    assert not is_ed25519_signature(found, MESSAGE + b"\n")
    assert not is_ed25519_signature(
        found.__class__(**{**fields(found), "namespace": "egs-approval"}), MESSAGE
    )
    assert not is_ed25519_signature(found.__class__(**{**fields(found), "key": bo_key.public}), MESSAGE)
    assert not is_ed25519_signature(found.__class__(**{**fields(found), "hash_name": "sha256"}), MESSAGE)


def fields(found: object) -> dict[str, object]:
    return {name: getattr(found, name) for name in found.__slots__}  # type: ignore[attr-defined]


def test_the_form_used_below_is_read():
    assert parse(sealed(*GOOD)) is not None


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param(f"{BEGIN}\n{END}\n", id="an empty one"),
        pytest.param(sealed(*GOOD).replace(END, ""), id="without an end"),
        pytest.param("x\n" + sealed(*GOOD), id="something before it"),
        pytest.param(sealed(*GOOD) + "x\n", id="something behind it"),
        pytest.param(sealed(*GOOD) + sealed(*GOOD), id="two of them"),
        pytest.param(sealed(*GOOD).replace("SSH", "PGP"), id="of another kind"),
        pytest.param(sealed(*GOOD).replace("\n", "\r\n"), id="with carriage returns"),
        pytest.param(sealed(*GOOD).replace("AAAA", "AA=AA", 1), id="broken base64"),
        pytest.param(sealed(*GOOD, version=2), id="of another version"),
        pytest.param(sealed(*GOOD, after=b"\0"), id="a byte too many"),
        pytest.param(sealed(*GOOD[:4]), id="a field too few"),
        pytest.param(armoured(unpacked(sealed(*GOOD))[:-1]), id="truncated"),
        pytest.param(armoured(b"SSHSIG\0\0\0\1\xff\xff\xff\xff"), id="a length beyond its end"),
        pytest.param(sealed(GOOD[0], b"", *GOOD[2:]), id="without a namespace"),
        pytest.param(sealed(GOOD[0], b"gi t", *GOOD[2:]), id="a namespace with a blank"),
        pytest.param(sealed(GOOD[0], b"git\0", *GOOD[2:]), id="a namespace with a NUL"),
        pytest.param(sealed(GOOD[0], b"git", b"x", *GOOD[3:]), id="something in the reserved field"),
        pytest.param(sealed(*GOOD[:3], b"md5", GOOD[4]), id="a hash that is none of the two"),
        pytest.param(sealed(*GOOD[:4], packed(b"ssh-rsa", b"s")), id="an algorithm that is not the key's"),
        pytest.param(sealed(*GOOD[:4], b""), id="without an algorithm"),
        pytest.param(sealed(ed25519(b"k" * 31), *GOOD[1:]), id="a key that is too short"),
        pytest.param(sealed(ed25519(b"k" * 32) + packed(b"x"), *GOOD[1:]), id="a key that is too long"),
        pytest.param(sealed(packed(b"ssh-dss", b"k"), *GOOD[1:4], packed(b"ssh-dss", b"s")), id="a DSA key"),
        pytest.param(
            sealed(packed(b"ssh-ed25519-cert-v01@openssh.com", b"k" * 32), *GOOD[1:]), id="a certificate"
        ),
        pytest.param(
            sealed(packed(b"ssh-rsa", b"\1\0\1", b"\x7f" * 128), *GOOD[1:4], packed(b"rsa-sha2-512", b"s")),
            id="an RSA key of 1023 bits",
        ),
        pytest.param(
            sealed(packed(b"ssh-rsa", b"\1\0\1", b"\x7f" * 256), *GOOD[1:4], packed(b"ssh-rsa", b"s")),
            id="RSA over SHA-1",
        ),
        pytest.param(sealed(GOOD[0], b"g" * LONGEST, *GOOD[2:]), id="a huge one"),
        pytest.param(sealed(*GOOD).replace(BEGIN, BEGIN + "é"), id="not ASCII"),
    ],
)
def test_what_is_no_signature_is_not_read(text):
    assert parse(text) is None


@given(st.text())
def test_no_text_is_too_strange(text):
    assert parse(text) is None
    canonical_key(text)


@given(st.binary(max_size=300))
def test_no_bytes_are_too_strange(blob):
    for text in (armoured(blob), armoured(b"SSHSIG\0\0\0\1" + blob)):
        found = parse(text)
        assert found is None or not is_ed25519_signature(found, MESSAGE)
    canonical_key("ssh-ed25519 " + base64.b64encode(blob).decode())


@given(st.data())
def test_a_signature_with_any_bit_changed_is_not_good(data):
    blob = bytearray(SIGNED)
    at = data.draw(st.integers(0, len(blob) * 8 - 1))
    blob[at // 8] ^= 1 << (at % 8)
    found = parse(armoured(bytes(blob)))
    good = found is not None and found.namespace == "git" and is_ed25519_signature(found, MESSAGE)
    assert not good


@given(st.data())
def test_a_truncated_signature_is_none(data):
    text = armoured(SIGNED)
    assert parse(text[: data.draw(st.integers(0, len(text) - 2))]) is None


# -- keys ------------------------------------------------------------------------------------------------------


def test_a_key_is_known_by_its_bytes_and_not_by_its_comment(ada_key):
    line = ada_key.private.with_name("ada.pub").read_text()
    assert canonical_key(line) == canonical_key(line.split("ada@")[0]) == ada_key.public


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("", id="nothing"),
        pytest.param("ssh-ed25519", id="a type alone"),
        pytest.param("ssh-ed25519 !!!!", id="no base64"),
        pytest.param(
            "ssh-rsa " + base64.b64encode(ed25519(b"k" * 32)).decode(), id="a type its bytes contradict"
        ),
        pytest.param(
            "ssh-dss " + base64.b64encode(packed(b"ssh-dss", b"k")).decode(), id="a type that does not count"
        ),
        pytest.param("gpg:1234", id="a short fingerprint"),
        pytest.param("gpg:" + "a" * 40, id="a fingerprint in lower case"),
    ],
)
def test_what_is_no_key_is_none(line):
    assert canonical_key(line) is None


def test_a_fingerprint_stands_for_itself():
    assert canonical_key("gpg:" + "A" * 40) == "gpg:" + "A" * 40


def test_the_private_half_is_never_shown(ada_key):
    key = read_private_key(ada_key.private)
    assert key.public == ada_key.public
    assert repr(key) == f"PrivateKey(public={key.public!r})"


def bad_file(folder: Path, name: str) -> Path:
    if name == "missing":
        return folder / "missing"
    if name == "public":
        return keys.ssh_key(folder).private.with_name("key.pub")
    if name == "passphrase":
        key = keys.ssh_key(folder)
        keys.run(["ssh-keygen", "-q", "-p", "-P", "", "-N", "secret words", "-f", str(key.private)])
        return key.private
    if name == "readable":
        key = keys.ssh_key(folder)
        key.private.chmod(0o640)
        return key.private
    if name == "rsa":
        return keys.ssh_key(folder, kind="rsa", bits=2048).private
    file = folder / "noise"
    file.write_bytes(b"-----BEGIN OPENSSH PRIVATE KEY-----\n" + b"\0" * 100)
    file.chmod(0o600)
    return file


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("missing", "check its path"),
        ("public", "chmod 600"),
        ("passphrase", "has a passphrase"),
        ("readable", "chmod 600"),
        ("rsa", "not an ed25519 key"),
        ("noise", "is not a private OpenSSH key"),
    ],
)
def test_a_file_that_holds_no_usable_key_says_what_to_do(tmp_path, name, says):
    with pytest.raises(UserError, match=says) as caught:
        read_private_key(bad_file(tmp_path, name))
    assert caught.value.reason == "BadKey"
    assert "PRIVATE" not in str(caught.value)
