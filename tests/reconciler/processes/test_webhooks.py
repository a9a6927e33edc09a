"""Webhooks are believed when they are signed with one of our secrets (issue: a webhook (HMAC) that wakes the loop)."""

from __future__ import annotations

import hmac
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.processes.webhooks import MOST_SECRETS, refusal, secrets_of
from schemas.errors import UserError

OLD, NEW = b"the old secret", b"the new secret"
UMLAUT = "geheim: für uns".encode()
BODY = b'{"ref": "refs/heads/main"}'


def signed(secret: bytes = NEW, body: bytes = BODY) -> str:
    return hmac.new(secret, body, sha256).hexdigest()


@pytest.mark.parametrize(
    ("headers", "body", "want"),
    [
        pytest.param({"X-Hub-Signature-256": "sha256=" + signed()}, BODY, None, id="GitHub, signed"),
        pytest.param({"X-Gitea-Signature": signed()}, BODY, None, id="Gitea, signed"),
        pytest.param({"X-Gitlab-Token": NEW.decode()}, BODY, None, id="GitLab, with the secret"),
        pytest.param(
            {"X-Hub-Signature-256": "sha256=" + signed(OLD)}, BODY, None, id="the old secret while both count"
        ),
        pytest.param({"X-Gitlab-Token": OLD.decode()}, BODY, None, id="GitLab, with the old secret"),
        pytest.param(
            {"X-Hub-Signature-256": "sha256=" + signed(), "X-Gitea-Signature": signed()},
            BODY,
            None,
            id="Gitea sends both headers",
        ),
        pytest.param({"X-Gitea-Signature": signed(body=b"")}, b"", None, id="an empty body, signed"),
        pytest.param({}, BODY, "SignatureMissing", id="no signature"),
        pytest.param({"X-Hub-Signature": "sha1=00"}, BODY, "SignatureMissing", id="only the weak SHA-1"),
        pytest.param({"X-Hub-Signature-256": ""}, BODY, "SignatureWrong", id="an empty signature"),
        pytest.param({"X-Gitlab-Token": ""}, BODY, "SignatureWrong", id="an empty token"),
        pytest.param({"X-Hub-Signature-256": signed()}, BODY, "SignatureWrong", id="GitHub without sha256="),
        pytest.param(
            {"X-Gitea-Signature": "sha256=" + signed()}, BODY, "SignatureWrong", id="Gitea with sha256="
        ),
        pytest.param({"X-Gitea-Signature": signed()[:-1]}, BODY, "SignatureWrong", id="one digit short"),
        pytest.param(
            {"X-Hub-Signature-256": "sha256=" + signed(b"another")},
            BODY,
            "SignatureWrong",
            id="another's secret",
        ),
        pytest.param(
            {"X-Hub-Signature-256": "sha256=" + signed()}, BODY + b" ", "SignatureWrong", id="a changed body"
        ),
        pytest.param({"X-Gitlab-Token": signed()}, BODY, "SignatureWrong", id="a signature is no token"),
        pytest.param(
            {"X-Hub-Signature-256": "sha256=" + NEW.decode()},
            BODY,
            "SignatureWrong",
            id="a token is no signature",
        ),
        pytest.param({"X-Gitlab-Token": "\udcff\u00e9"}, BODY, "SignatureWrong", id="bytes that are no text"),
        pytest.param(
            {"X-Gitlab-Token": "geheim: für uns".encode().decode("latin-1")}, BODY, None, id="not ASCII"
        ),
    ],
)
def test_a_hook_is_believed_only_with_a_secret_of_ours(headers, body, want):
    assert refusal(headers, body, (OLD, NEW, UMLAUT)) == want


@given(
    st.binary(max_size=64), st.text(max_size=80), st.sampled_from(["X-Hub-Signature-256", "X-Gitlab-Token"])
)
def test_no_guess_is_believed(body, guess, header):
    """Laws: whatever is sent, it is answered, and only the real thing opens."""
    assert refusal({header: guess}, body, (NEW,)) == "SignatureWrong"


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("one\n", (b"one",), id="one secret"),
        pytest.param("new\nold\n", (b"new", b"old"), id="two while one follows the other"),
        pytest.param("\n  new \r\n\nnew\n", (b"new",), id="blanks, empty lines and repetitions do not count"),
    ],
)
def test_secrets_stand_one_a_line(text, want):
    assert secrets_of(text) == want


@pytest.mark.parametrize("text", ["", " \n\n", "\n".join(map(str, range(MOST_SECRETS + 1)))])
def test_a_file_without_a_secret_is_refused(text):
    """An empty secret would believe everybody."""
    with pytest.raises(UserError) as caught:
        secrets_of(text)
    assert caught.value.reason == "HookSecretMissing"
