"""OpenPGP signatures as the real `gpg` makes them, and hostile ones (B10)."""

from __future__ import annotations

import base64
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.trust.openpgp import BEGIN, END, LONGEST, packet_of
from reconciler.trust.signature_check import SystemVerifier
from schemas.errors import Fault, UserError
from tests.support.realkeys import OpenPgpKey, openpgp_key

MESSAGE = b"tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n\nHello\n"


def armoured(packet: bytes, headers: str = "") -> str:
    return f"{BEGIN}\n{headers}\n{base64.b64encode(packet).decode()}\n{END}\n"


def packet(tag: int, content: bytes) -> bytes:
    return bytes([0xC0 | tag, len(content)]) + content


# Version 4, over bytes, EdDSA, SHA-256.
PLAIN = bytes([4, 0, 22, 8]) + bytes(20)
GOOD = packet(2, PLAIN)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(armoured(GOOD), id="of the new form"),
        pytest.param(armoured(bytes([0x88, len(PLAIN)]) + PLAIN), id="of the old form"),
        pytest.param(
            armoured(bytes([0x89, 0, len(PLAIN)]) + PLAIN), id="of the old form with a longer length"
        ),
        pytest.param(armoured(bytes([0xC2, 255, 0, 0, 0, len(PLAIN)]) + PLAIN), id="with the longest length"),
        pytest.param(armoured(bytes([0xC2, 192, 8]) + PLAIN + bytes(176)), id="with a middle length"),
        pytest.param(armoured(GOOD, "Comment: hello\n"), id="with a header"),
        pytest.param(armoured(GOOD).replace(END, "=abcd\n" + END), id="with a checksum"),
    ],
)
def test_one_plain_packet_is_read(text):
    assert packet_of(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param(f"{BEGIN}\n\n{END}\n", id="an empty one"),
        pytest.param(armoured(GOOD).replace("\n\n", "\n"), id="without the blank line"),
        pytest.param(armoured(GOOD).replace(END, ""), id="without an end"),
        pytest.param("x" + armoured(GOOD), id="something before it"),
        pytest.param(armoured(GOOD) + "x", id="something behind it"),
        pytest.param(armoured(GOOD + GOOD), id="two signatures"),
        pytest.param(armoured(packet(8, b"\1" + GOOD)), id="a compressed packet"),
        pytest.param(armoured(packet(11, PLAIN)), id="a literal packet"),
        pytest.param(armoured(packet(4, PLAIN)), id="a one-pass packet"),
        pytest.param(armoured(GOOD[:-1]), id="truncated"),
        pytest.param(armoured(bytes([0x8B]) + PLAIN), id="of unknown length"),
        pytest.param(armoured(bytes([0xC2, 224]) + PLAIN), id="in parts"),
        pytest.param(armoured(bytes([0xC2])), id="a head alone"),
        pytest.param(armoured(bytes([0x42, len(PLAIN)]) + PLAIN), id="no packet at all"),
        pytest.param(armoured(packet(2, b"\3" + PLAIN[1:])), id="of version 3"),
        pytest.param(armoured(packet(2, b"\4\1" + PLAIN[2:])), id="over text"),
        pytest.param(armoured(packet(2, b"\4\x10" + PLAIN[2:])), id="that certifies a key"),
        pytest.param(armoured(packet(2, PLAIN[:3] + b"\2" + PLAIN[4:])), id="over SHA-1"),
        pytest.param(armoured(packet(2, PLAIN[:5])), id="too short"),
        pytest.param(armoured(GOOD + bytes(LONGEST)), id="huge"),
    ],
)
def test_what_is_not_one_plain_packet_is_none(text):
    assert packet_of(text) is None


@given(st.text())
def test_no_text_is_too_strange(text):
    assert packet_of(text) is None
    packet_of(f"{BEGIN}\n\n{text}\n{END}\n")


@given(st.binary(max_size=300))
def test_no_bytes_are_too_strange(content):
    packet_of(armoured(content))
    packet_of(armoured(packet(2, content[:180])))


# -- the real gpg ----------------------------------------------------------------------------------------------


def verifier(folder: Path, *some: OpenPgpKey) -> SystemVerifier:
    (folder / "gpg").mkdir(parents=True)
    for number, key in enumerate(some):
        (folder / "gpg" / f"{number}.asc").write_bytes(key.exported())
    return SystemVerifier(folder)


def test_a_good_signature_names_its_key(openpgp, tmp_path):
    checks = verifier(tmp_path / "trust", openpgp)
    assert checks.key_of("git", MESSAGE, openpgp.sign(MESSAGE)) == f"gpg:{openpgp.fingerprint}"


def test_a_signature_is_of_one_message(openpgp, tmp_path):
    checks = verifier(tmp_path / "trust", openpgp)
    assert checks.key_of("git", MESSAGE + b"\n", openpgp.sign(MESSAGE)) is None


def test_it_counts_for_commits_alone(openpgp, tmp_path):
    checks = verifier(tmp_path / "trust", openpgp)
    assert checks.key_of("egs-approval", MESSAGE, openpgp.sign(MESSAGE)) is None


def test_one_over_text_or_a_weak_hash_is_none(openpgp, tmp_path):
    checks = verifier(tmp_path / "trust", openpgp)
    assert checks.key_of("git", MESSAGE, openpgp.sign(MESSAGE, "--textmode")) is None
    weak = openpgp.sign(MESSAGE, "--digest-algo", "SHA1", "--allow-weak-digest-algos")
    assert checks.key_of("git", MESSAGE, weak) is None


def test_a_key_that_is_not_in_the_folder_signs_nothing(openpgp, tmp_path):
    with (
        tempfile.TemporaryDirectory(prefix="gpg-") as home,
        openpgp_key(Path(home) / "bo") as bo,
    ):
        assert verifier(tmp_path / "one", bo).key_of("git", MESSAGE, openpgp.sign(MESSAGE)) is None
        both = verifier(tmp_path / "both", openpgp, bo)
        assert both.key_of("git", MESSAGE, bo.sign(MESSAGE)) == f"gpg:{bo.fingerprint}"
    assert SystemVerifier().key_of("git", MESSAGE, openpgp.sign(MESSAGE)) is None


def test_a_key_that_was_revoked_signs_nothing(tmp_path):
    with tempfile.TemporaryDirectory(prefix="gpg-") as home, openpgp_key(Path(home) / "ada") as key:
        signature = key.sign(MESSAGE)
        trust = tmp_path / "trust"
        checks = verifier(trust, key)
        assert checks.key_of("git", MESSAGE, signature) is not None
        before = key.exported()
        key.revoke()
        (trust / "gpg" / "0.asc").write_bytes(key.exported())
        assert checks.key_of("git", MESSAGE, signature) is None, "the folder changed: it is read again"
        (trust / "gpg" / "0.asc").write_bytes(before)
        assert checks.key_of("git", MESSAGE, signature) is not None


PAST = ("--faked-system-time", "20200101T000000!")


def test_a_key_that_has_expired_signs_nothing(tmp_path):
    with tempfile.TemporaryDirectory(prefix="gpg-") as home, openpgp_key(Path(home) / "a", "1d", PAST) as key:
        signature = key.sign(MESSAGE, *PAST)
        assert packet_of(signature) is not None
        assert verifier(tmp_path / "trust", key).key_of("git", MESSAGE, signature) is None


def test_a_signature_that_has_expired_is_none(tmp_path):
    with (
        tempfile.TemporaryDirectory(prefix="gpg-") as home,
        openpgp_key(Path(home) / "a", "never", PAST) as key,
    ):
        assert verifier(tmp_path / "one", key).key_of("git", MESSAGE, key.sign(MESSAGE, *PAST)) is not None
        signature = key.sign(MESSAGE, *PAST, "--default-sig-expire", "1d")
        assert packet_of(signature) is not None
        assert verifier(tmp_path / "two", key).key_of("git", MESSAGE, signature) is None


def test_a_folder_whose_keys_cannot_be_read_says_so(openpgp, tmp_path):
    trust = tmp_path / "trust"
    checks = verifier(trust, openpgp)
    (trust / "gpg" / "1.asc").write_text("no key\n")
    with pytest.raises(UserError, match=r"1\.asc contains no OpenPGP key"):
        SystemVerifier(trust)
    with pytest.raises(Fault, match=r"1\.asc contains no OpenPGP key"):
        checks.key_of("git", MESSAGE, openpgp.sign(MESSAGE))


def test_the_home_goes_with_the_verifier(openpgp, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    checks = verifier(tmp_path / "trust", openpgp)
    assert list(tmp_path.glob("egs-gpg-*"))
    del checks
    assert not list(tmp_path.glob("egs-gpg-*"))


def test_gpg_that_is_not_installed_is_somebodys_mistake(openpgp, tmp_path, monkeypatch):
    trust = tmp_path / "trust"
    verifier(trust, openpgp)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="gpg is not installed"):
        SystemVerifier(trust)
