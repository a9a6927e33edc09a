"""Sessions: any replica understands what another signed, and nobody understands anything else."""

from __future__ import annotations

import base64
import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jwt
from joserfc.jwk import OctKey

from portal.http.errors import ApiError
from portal.identity.sessions import (
    Session,
    Signer,
    ends,
    issue,
    session_of,
    session_of_ticket,
    signer_of,
    ticket,
)
from schemas.errors import UserError
from tests.support.profile import law
from tests.support.world import START

OLD, NEW = b"o" * 32, b"n" * 32
LIFE = timedelta(hours=1)
SIGNER = Signer((NEW, OLD))
BO = Session("bo@example.com", "Bo", START + LIFE, groups=("team",))


def encoded(part: object) -> str:
    text = part if isinstance(part, bytes) else json.dumps(part).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


@law(50)
@given(
    st.emails(), st.text(max_size=50), st.text("0123456789abcdef"), st.lists(st.text(max_size=20), max_size=5)
)
def test_a_session_comes_back_as_it_was(email: str, name: str, key: str, groups: list[str]):
    session = Session(email, name, START + LIFE, key, tuple(groups))
    assert session_of(SIGNER, issue(SIGNER, session), START) == session


@law(200)
@given(
    st.text(max_size=200) | st.binary(max_size=99).map(lambda b: f"{encoded(b)}.{encoded(b)}.{encoded(b)}")
)
def test_nothing_else_is_a_session(text: str):
    with pytest.raises(ApiError):
        session_of(SIGNER, text, START)


@law(100)
@given(st.data())
def test_one_changed_letter_ends_it(data: st.DataObject):
    token = issue(SIGNER, BO)
    at = data.draw(st.integers(0, len(token) - 2))  # of the last letter two bits mean nothing
    other = data.draw(st.sampled_from("abcXYZ019-_.").filter(lambda c: c != token[at]))
    with pytest.raises(ApiError):
        session_of(SIGNER, token[:at] + other + token[at + 1 :], START)


@pytest.mark.parametrize(
    ("signer", "is_good"),
    [
        pytest.param(Signer((OLD,)), True, id="by the only secret"),
        pytest.param(Signer((OLD, b"x" * 32)), True, id="by the first of two, while the second is going"),
        pytest.param(Signer((b"x" * 32,)), False, id="not by a secret of somebody else"),
    ],
)
def test_a_session_of_before_the_secret_was_changed(signer: Signer, is_good: bool):
    token = issue(signer, BO)
    if is_good:
        assert session_of(SIGNER, token, START) == BO
        return
    with pytest.raises(ApiError) as refused:
        session_of(SIGNER, token, START)
    assert (refused.value.status, refused.value.reason) == (401, "SessionEnded")


CLAIMS = {
    "sub": "ada@example.com",
    "name": "Ada",
    "aud": "egs-session",
    "exp": int((START + LIFE).timestamp()),
}


@pytest.mark.parametrize(
    "token",
    [
        pytest.param(f"{encoded({'alg': 'none'})}.{encoded(CLAIMS)}.", id="without a signature"),
        pytest.param(f"{encoded({'alg': 'HS256'})}.{encoded(CLAIMS)}.", id="with an empty signature"),
        pytest.param(
            jwt.encode({"alg": "HS512"}, CLAIMS, OctKey.import_key(NEW * 2), ["HS512"]),
            id="by another algorithm",
        ),
        pytest.param(
            jwt.encode({"alg": "HS256"}, {**CLAIMS, "aud": "egs-login"}, OctKey.import_key(NEW)),
            id="signed for another purpose",
        ),
        pytest.param(
            jwt.encode({"alg": "HS256"}, {"sub": "ada@example.com"}, OctKey.import_key(NEW)),
            id="signed by the same secret, for nothing of ours",
        ),
        pytest.param(
            jwt.encode({"alg": "HS256"}, {**CLAIMS, "exp": "never"}, OctKey.import_key(NEW)),
            id="without an end",
        ),
    ],
)
def test_what_is_no_session(token: str):
    with pytest.raises(ApiError):
        session_of(SIGNER, token, START)


def test_it_ends_by_itself():
    token = issue(SIGNER, BO)
    assert session_of(SIGNER, token, START + LIFE - timedelta(seconds=1)) == BO
    with pytest.raises(ApiError):
        session_of(SIGNER, token, START + LIFE)


@pytest.mark.parametrize(
    ("not_after", "want"),
    [
        pytest.param(None, START + LIFE, id="after an hour"),
        pytest.param(START + timedelta(days=9), START + LIFE, id="after an hour also of a key that lasts"),
        pytest.param(START + timedelta(minutes=5), START + timedelta(minutes=5), id="with its key"),
    ],
)
def test_when_a_session_ends(not_after: datetime | None, want: datetime):
    assert ends(START, LIFE, not_after) == want


def test_secrets_come_from_a_file_one_a_line(tmp_path: Path):
    file = tmp_path / "secret"
    file.write_bytes(NEW + b"\n\n" + OLD + b"\n")
    assert session_of(signer_of(file), issue(Signer((OLD,)), BO), START) == BO
    assert session_of(Signer((NEW,)), issue(signer_of(file), BO), START) == BO, "the first one signs"
    assert "n" * 8 not in repr(signer_of(file))


@pytest.mark.parametrize("text", [b"", b"\n", b"short\n", NEW + b"\nshort"])
def test_a_secret_that_is_too_short_is_refused(tmp_path: Path, text: bytes):
    file = tmp_path / "secret"
    file.write_bytes(text)
    with pytest.raises(UserError, match="openssl rand"):
        signer_of(file)
    with pytest.raises(UserError, match="cannot be read"):
        signer_of(tmp_path / "none")


def test_without_a_file_each_process_has_its_own():
    with pytest.raises(ApiError):
        session_of(signer_of(None), issue(signer_of(None), BO), START)


def test_a_ticket_opens_the_session_of_its_person_until_it_ends():
    text = ticket(SIGNER, BO, START + timedelta(minutes=1))
    assert session_of_ticket(SIGNER, text, START) == BO
    with pytest.raises(ApiError, match="this link has ended"):
        session_of_ticket(SIGNER, text, START + timedelta(minutes=1))


def test_a_ticket_is_no_session_and_a_session_no_ticket():
    with pytest.raises(ApiError):
        session_of(SIGNER, ticket(SIGNER, BO, START + LIFE), START)
    with pytest.raises(ApiError):
        session_of_ticket(SIGNER, issue(SIGNER, BO), START)
