"""What shows nobody costs little: small bodies, mistakes rendered as far as they are shown, and an end to it."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.http import app, validation_errors
from portal.http.headers import COUNTED, MOST_OF_STRANGERS
from portal.http.rate_limits import Rate, Rates
from tests.support.portal import GENEROUS, KEYS, Site

AUTH = "/api/v1/auth"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("site"))
    yield made
    made.close()


def _fields(count: int) -> bytes:
    return json.dumps({f"f{number}": 1 for number in range(count)}).encode()


@pytest.mark.parametrize(
    ("body", "want"),
    [
        pytest.param(_fields(90_000), 413, id="ninety thousand fields are not read"),
        pytest.param(iter([_fields(90_000)]), 413, id="nor without a length"),
        pytest.param(b"[" * MOST_OF_STRANGERS, 400, id="what fits is parsed, and no JSON"),
        pytest.param(_fields(2_000), 422, id="a few thousand fields are refused in one sentence"),
        pytest.param(json.dumps({"idToken": "x" * 20_000}).encode(), 404, id="the longest ID token fits"),
        pytest.param(json.dumps({"apiKey": KEYS["bo-editor"]}).encode(), 200, id="a key opens a session"),
    ],
)
def test_a_body_before_login_is_small(site: Site, body: bytes, want: int) -> None:
    answer = site.client(None).post(AUTH, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == want, answer.text[:300]
    assert len(answer.content) < 4000


def test_whoever_is_known_may_say_more(site: Site) -> None:
    body = _fields(10_000)
    assert len(body) > MOST_OF_STRANGERS
    assert site.client("bo-editor").post("/api/v1/gpr", content=body).status_code == 422
    wrong = {"Authorization": "Bearer " + KEYS["bo-editor"][:-1] + "y"}
    assert site.client(None).post("/api/v1/gpr", content=body, headers=wrong).status_code == 413


def test_no_more_mistakes_are_rendered_than_are_shown(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    rendered: list[object] = []
    monkeypatch.setattr(
        app, "mistake", lambda error: rendered.append(error) or validation_errors.mistake(error)
    )
    answer = site.client(None).post(AUTH, json=json.loads(_fields(2_000)))
    assert answer.json()["message"].endswith("; and 1990 more")
    assert len(rendered) == app.MOST_MISTAKES


@pytest.fixture
def narrow(tmp_path: Path) -> Iterator[Site]:
    """Ten requests of strangers at once."""
    rates = Rates(GENEROUS.reads, GENEROUS.writes, GENEROUS.failures, Rate(1, 10))
    made = Site(tmp_path, portal={"rates": rates})
    yield made
    made.close()


def test_an_address_that_shows_nobody_is_told_to_wait(narrow: Site) -> None:
    client = narrow.client(None)
    found = [client.get("/api/v1/auth/config").status_code for _ in range(12)]
    assert found == [200] * 10 + [429] * 2
    late = client.get("/api/v1/gpr?gprId=vision/none")
    assert (late.status_code, late.headers["Retry-After"]) == (429, "1")
    assert client.get("/healthz").status_code == 200, "a probe is never refused"
    assert client.get("/readyz").status_code == 200
    assert narrow.client("bo-editor").get("/api/v1/auth").status_code == 200, "who is known pays for nobody"


def test_a_large_body_counts_as_several_requests(narrow: Site) -> None:
    client = narrow.client(None)
    body = json.dumps({"apiKey": "x" * (4 * COUNTED)}).encode()
    assert [client.post(AUTH, content=body).status_code for _ in range(3)] == [422, 422, 429]


def test_a_probe_names_no_folder_and_no_address(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """The log does."""
    replica = site.replica()
    with caplog.at_level(logging.WARNING):
        kept = site.repo.rename(site.repo.with_name("away.git"))
        replica.reader.refresh()
        site.silent_s = 3600.0
        answer = replica.client(None).get("/readyz")
        asked = replica.client("bo-editor").get("/api/v1/gpr/list")
        site.silent_s = 0.0
        kept.rename(site.repo)
    assert answer.status_code == asked.status_code == 503
    for text in (answer.text, asked.text):
        assert "log says why" in text
        assert str(site.folder) not in text
        assert "repo.git" not in text
    assert "repository not read" in caplog.text
