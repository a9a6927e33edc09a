"""Which exception an answer is: unknown id, wrong state, no right and no server are told apart. A7, K2."""

from __future__ import annotations

import pytest

from egs import exceptions
from egs.exceptions import EgsApplicationException
from egs.refusals import login_refusal, refusal
from tests.support.sdk import URL, refused, said

EVERY = [
    kind
    for kind in vars(exceptions).values()
    if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, Warning)
]


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.__name__)
def test_all_have_one_base(kind):
    assert issubclass(kind, EgsApplicationException)


@pytest.mark.parametrize(
    ("status", "key", "want"),
    [
        pytest.param(401, "Unauthenticated", "Unauthorized", id="nobody is logged in"),
        pytest.param(403, "Forbidden", "Unauthorized", id="no right"),
        pytest.param(404, "NotFound", "ResourceNotFound", id="unknown id"),
        pytest.param(409, "GpuAlreadyProvisioned", "GpuAlreadyProvisioned", id="holds nodes"),
        pytest.param(409, "GpuAlreadyReleased", "GpuAlreadyReleased", id="gave them back"),
        pytest.param(409, "NotProvisioned", "NotProvisioned", id="holds none yet"),
        pytest.param(409, "WorkspaceAlreadyExists", "WorkspaceAlreadyExists", id="a name that is taken"),
        pytest.param(409, "Conflict", "Conflict", id="somebody was faster"),
        pytest.param(422, "BadParameters", "BadParameters", id="no sense"),
        pytest.param(422, "SomethingNewer", "BadParameters", id="a word that this client does not know"),
        pytest.param(429, "", "TooManyRequests", id="too often"),
        pytest.param(503, "Unavailable", "ServerUnreachable", id="not ready"),
        pytest.param(500, "", "UnhandledException", id="it broke"),
        pytest.param(404, "NoSuchPath", "UnhandledException", id="a server without that function"),
    ],
)
def test_of_a_call(status, key, want):
    found = refusal(refused(status, key, "so it is"), URL)
    assert type(found).__name__ == want
    assert (found.status, found.key, found.request_id, found.data) == (status, key, "r-1", {"why": "so"})
    assert "so it is" in str(found)
    assert "r-1" in str(found)


@pytest.mark.parametrize(
    ("answer", "want"),
    [
        pytest.param(refused(400), "ApiKeyInvalid", id="400: no key at all"),
        pytest.param(
            refused(401, message="Api Key has expired"), "ApiKeyExpired", id="401 with the documented text"
        ),
        pytest.param(refused(401, "ApiKeyExpired"), "ApiKeyExpired", id="401 with the server's word"),
        pytest.param(refused(401), "ApiKeyNotFound", id="any other 401"),
        pytest.param(refused(401, "ApiKeyRevoked"), "ApiKeyRevoked", id="revoked"),
        pytest.param(refused(404, "NoSuchPath"), "ServerUnreachable", id="another server"),
        pytest.param(said(200, "<html>"), "ServerUnreachable", id="a web site"),
        pytest.param(refused(503), "ServerUnreachable", id="not ready"),
        pytest.param(refused(429), "TooManyRequests", id="too many failed logins"),
    ],
)
def test_of_a_login(answer, want):
    assert type(login_refusal(answer, URL)).__name__ == want


def test_a_revoked_key_is_also_one_that_is_not_found():
    assert issubclass(exceptions.ApiKeyRevoked, exceptions.ApiKeyNotFound)


def test_what_lay_underneath():
    cause = OSError("refused")
    with pytest.raises(EgsApplicationException) as caught:
        raise exceptions.ServerUnreachable(URL) from cause
    assert caught.value.exception is cause
    assert caught.value.address == URL
    alone = exceptions.Unauthorized("no")
    assert alone.exception is alone


@pytest.mark.parametrize("text", ["", "<html>", "[]", "null", '{"error": 3}', '{"error": {"message": null}}'])
def test_a_refusal_whatever_stands_in_it(text):
    found = refusal(said(418, text), URL)
    assert found.status == 418
    assert found.message
