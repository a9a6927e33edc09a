"""The keys outside of the repository: allowed_signers, revoked_keys, and a folder that changes (B10)."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.trust.keyring import (
    REVOKED,
    SIGNERS,
    Keyring,
    TrustFolder,
    parse_revoked,
    parse_signers,
    read_keyring,
)
from schemas.errors import Fault, UserError
from tests.support import realkeys as keys

NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
DAY = timedelta(days=1)
ADA = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGtra2tra2tra2tra2tra2tra2tra2tra2tra2tra2tr"
BO = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJi"
FINGERPRINT = "gpg:" + "AB12" * 10


def ring(signers: str, revoked: str = "") -> Keyring:
    return Keyring(parse_signers(signers), parse_revoked(revoked), is_given=True)


@pytest.mark.parametrize(
    ("lines", "want"),
    [
        pytest.param("", (), id="nobody is listed"),
        pytest.param(f"ada@example.com {ADA}", ("ada@example.com",), id="a line names one"),
        pytest.param(
            f"ada@example.com {ADA} ada's laptop", ("ada@example.com",), id="a comment says nothing"
        ),
        pytest.param(
            f"# old\n\n  # x\nada@example.com\t{ADA}\n", ("ada@example.com",), id="comments and blanks"
        ),
        pytest.param(
            f"ada@example.com,controller {ADA}", ("ada@example.com", "controller"), id="a line names two"
        ),
        pytest.param(
            f'"ada@example.com,controller" {ADA}', ("ada@example.com", "controller"), id="in quotes"
        ),
        pytest.param(
            f"a@x.com {ADA}\nb@x.com {ADA}\na@x.com {ADA}",
            ("a@x.com", "b@x.com"),
            id="lines add up, each once",
        ),
        pytest.param(f"bo@example.com {BO}", (), id="another's key"),
        pytest.param(f'a@x.com namespaces="git" {ADA}', ("a@x.com",), id="for this purpose"),
        pytest.param(
            f'a@x.com namespaces="egs-approval,git" {ADA}', ("a@x.com",), id="for this purpose among others"
        ),
        pytest.param(f'a@x.com namespaces="egs-approval" {ADA}', (), id="for another purpose"),
        pytest.param(f'a@x.com valid-after="20261121" {ADA}', ("a@x.com",), id="since today"),
        pytest.param(f'a@x.com valid-after="20261121090000" {ADA}', (), id="not yet"),
        pytest.param(f'a@x.com valid-before="202611220000Z" {ADA}', ("a@x.com",), id="until tomorrow"),
        pytest.param(f'a@x.com valid-before="20261121" {ADA}', (), id="not any more"),
        pytest.param(
            f'a@x.com namespaces="git",valid-after="20260101",valid-before="20270101" {ADA}',
            ("a@x.com",),
            id="all options at once",
        ),
        pytest.param(f'a@x.com VALID-BEFORE="20250101" {ADA}', (), id="options in capitals count as well"),
    ],
)
def test_whom_a_key_signs_for(lines, want):
    assert ring(lines).principals(ADA, "git", NOW) == want


def test_ssh_keygen_reads_the_same_file_the_same_way(ada_key, bo_key, tmp_path):
    text = (
        f'ada@example.com namespaces="git" {ada_key.public}\n'
        f'"bo@example.com,controller" valid-before="20200101" {bo_key.public}\n'
        f"agent:east/* {bo_key.public} a comment\n"
    )
    file = tmp_path / SIGNERS
    file.write_text(text)
    ours = read_keyring(tmp_path)
    for key in (ada_key, bo_key):
        for namespace in ("git", "egs-health"):
            signature = tmp_path / "signature"
            signature.write_text(keys.ssh_sign(key, namespace, b"x"))
            for who in ("ada@example.com", "bo@example.com", "controller", "agent:east/a1", "agent:west/a1"):
                command = ["ssh-keygen", "-Y", "verify", "-f", str(file), "-I", who, "-n", namespace]
                assert ours.allows(key.public, who, namespace, NOW) is succeeds(
                    [*command, "-s", str(signature)]
                ), (who, namespace)


def succeeds(command: list[str]) -> bool:
    try:
        keys.run(command, b"x")
    except AssertionError:
        return False
    return True


def test_a_revoked_key_signs_for_nobody():
    found = ring(
        f"ada@example.com {ADA}\nada@example.com {BO}", f"# lost laptop\n{ADA} ada's\n{FINGERPRINT}\n"
    )
    assert found.principals(ADA, "git", NOW) == ()
    assert found.principals(BO, "git", NOW) == ("ada@example.com",)
    assert [found.revoked(key) for key in (ADA, BO, FINGERPRINT)] == [True, False, True]


def test_an_address_is_named_by_any_line_of_its_own():
    found = ring(f'ada@example.com valid-before="20200101" {ADA}\n*@example.org {BO}')
    assert found.names("ada@example.com")
    assert not found.names("bo@example.org"), "a pattern names nobody"
    assert not found.names("bo@example.com")


def test_patterns_are_for_machines():
    found = ring(f"agent:east/* {ADA}\ncontroller {BO}")
    assert found.allows(ADA, "agent:east/a1", "egs-health", NOW)
    assert not found.allows(ADA, "agent:west/a1", "egs-health", NOW)
    assert not found.allows(ADA, "controller", "git", NOW)
    assert found.allows(BO, "controller", "git", NOW)


def test_an_openpgp_key_is_listed_by_its_fingerprint():
    assert ring(f"ada@example.com {FINGERPRINT}").principals(FINGERPRINT, "git", NOW) == ("ada@example.com",)


def test_no_folder_names_nobody():
    assert read_keyring(None) == Keyring()


def test_a_folder_without_allowed_signers_is_none_given(tmp_path):
    (tmp_path / REVOKED).write_text(f"{ADA}\n")
    found = read_keyring(tmp_path)
    assert not found.is_given
    assert found.revoked(ADA)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        pytest.param("ada@example.com", "no key", id="no key"),
        pytest.param(f"ada@example.com {ADA[:40]}", "not a supported key", id="a cut key"),
        pytest.param("ada@example.com ssh-dss AAAA", "not a supported key", id="a key of a broken kind"),
        pytest.param(f"ada@example.com cert-authority {ADA}", "certificates do not count", id="an authority"),
        pytest.param(
            f'ada@example.com valid-until="20270101" {ADA}', "not supported", id="an option nobody knows"
        ),
        pytest.param(
            f"ada@example.com valid-before=20270101 {ADA}", "not supported", id="an option without quotes"
        ),
        pytest.param(f'ada@example.com valid-before="soon" {ADA}', "is not a time", id="no time"),
        pytest.param(f'ada@example.com valid-before="20271301" {ADA}', "is not a time", id="a month of 13"),
        pytest.param(
            f'a@x.com valid-after="20270101",valid-before="20260101" {ADA}',
            "never be valid",
            id="an empty time",
        ),
        pytest.param(f"!ada@example.com {ADA}", "is not a principal", id="a negation"),
        pytest.param(f"ada@example.com, {ADA}", "is not a principal", id="an empty name"),
        pytest.param(f"ada@[x] {ADA}", "is not a principal", id="a set of characters"),
        pytest.param(ADA, "not a supported key", id="a key alone"),
    ],
)
def test_a_line_that_cannot_be_read_is_refused_with_its_number(line, says):
    with pytest.raises(UserError, match=says) as caught:
        parse_signers(f"# first\n{line}\n")
    assert caught.value.reason == "BadTrustFolder"
    assert "allowed_signers:2" in str(caught.value)


@pytest.mark.parametrize("line", ["ada@example.com", f"ada@example.com {ADA}", "*"])
def test_revoked_keys_are_keys_alone(line):
    with pytest.raises(UserError, match="revoked_keys:1"):
        parse_revoked(line)


@given(st.text())
def test_no_text_is_too_strange(text):
    for read in (parse_signers, parse_revoked):
        with suppress(UserError):
            read(text)


@given(st.text(alphabet=' "=,abc@.\t*'), st.text(alphabet=' "=,abc@.\t*'))
def test_no_line_around_a_key_is_too_strange(before, after):
    try:
        signers = parse_signers(f"{before} {ADA} {after}")
    except UserError:
        return
    assert [signer.key for signer in signers] in ([ADA], [])


def test_a_krl_is_refused(tmp_path):
    (tmp_path / REVOKED).write_bytes(b"SSHKRL\n\0\xff\xfe\0")
    with pytest.raises(UserError, match="is not text"):
        read_keyring(tmp_path)


def test_a_folder_that_is_none_is_refused(tmp_path):
    with pytest.raises(UserError, match="is not a folder"):
        read_keyring(tmp_path / "missing")


# -- a folder that changes -------------------------------------------------------------------------------------


def write(folder: Path, text: str, name: str = SIGNERS) -> None:
    """As Kubernetes does: a new file takes the old one's place."""
    new = folder / "new"
    new.write_text(text)
    new.replace(folder / name)


def test_a_change_counts_at_the_next_look(tmp_path):
    write(tmp_path, f"ada@example.com {ADA}\n")
    folder = TrustFolder(tmp_path)
    assert folder.keyring().names("ada@example.com")
    write(tmp_path, f"bob@example.com {BO} 1\n")
    assert not folder.keyring().names("ada@example.com")
    write(tmp_path, f"{BO}\n", REVOKED)
    assert folder.keyring().revoked(BO)


def test_a_folder_that_does_not_change_is_not_read_again(tmp_path):
    write(tmp_path, f"ada@example.com {ADA}\n")
    folder = TrustFolder(tmp_path)
    assert folder.keyring() is folder.keyring()


def test_a_folder_that_broke_is_a_fault_until_it_is_mended(tmp_path):
    write(tmp_path, f"ada@example.com {ADA}\n")
    folder = TrustFolder(tmp_path)
    write(tmp_path, "ada@example.com\n")
    for _ in range(2):
        with pytest.raises(Fault, match="no key") as caught:
            folder.keyring()
        assert caught.value.reason == "BadTrustFolder"
    write(tmp_path, f"bo@example.com {BO}\n")
    assert folder.keyring().names("bo@example.com")


def test_a_folder_that_is_broken_from_the_start_is_somebodys_mistake(tmp_path):
    write(tmp_path, "ada@example.com\n")
    with pytest.raises(UserError):
        TrustFolder(tmp_path)
