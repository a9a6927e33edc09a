"""An answer that is lost on its way: the call is made again, and what it asked for happens once. A7."""

from __future__ import annotations

import os
from datetime import timedelta

import httpx
import pytest

import egs
from egs import exceptions
from tests.support import repos
from tests.support.portal import KEYS, Site

TEN = ("train", "vision", "east", 1, 8, 80, "", "H100-80GB", "0d6h0m", 150)


class Losing(httpx.BaseTransport):
    """Brings each write to the server, and loses the first answer to it."""

    def __init__(self):
        self._real = httpx.HTTPTransport()
        self._seen = set()

    def handle_request(self, request):
        answer = self._real.handle_request(request)
        answer.read()
        key = request.headers.get("idempotency-key")
        if key and key not in self._seen:
            self._seen.add(key)
            raise httpx.ReadError("lost")
        return answer


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    made = Site(tmp_path_factory.mktemp("site"), poll=timedelta(minutes=10))
    made.settle()
    yield made
    made.close()


@pytest.fixture
def auth(site):
    with site.server() as url:
        session = egs.authenticate(url, KEYS["ada-owner"])
        session.close()
        session.connection.pool(os.getpid(), lambda: httpx.Client(transport=Losing()))
        yield session


def test_a_request_is_filed_once(auth, site):
    before = len(site.log())
    request_id = egs.request_gpu(*TEN, auth)
    assert request_id.change.way == "pushed"
    assert egs.gpu_request_status(request_id, auth).gpr_name == "train"
    assert len(site.log()) == before + 1


def test_a_change_is_found_by_the_id_of_its_request(auth, site):
    request_id = egs.request_gpu(*TEN, auth)
    named = repos.git(site.repo, "log", "-1", "--format=%(trailers:key=Request-Id,valueonly)", "main").strip()
    for word in (named, f"/api/v1/writes/{named}"):
        assert egs.write_status(word, auth).commit == request_id.change.commit


def test_changes_are_made_once(auth, site):
    request_id = egs.request_gpu(*TEN, auth)
    before = len(site.log())
    egs.update_gpu_request_priority(request_id, 120, auth)
    egs.update_gpu_request_name(request_id, "again", auth)
    egs.cancel_gpu_request(request_id, auth)
    assert len(site.log()) == before + 3


def test_workspaces_and_templates_are_made_once(auth, site):
    before = len(site.log())
    assert egs.create_workspace("speech", ["east"], ["speech"], "Cy", "cy@example.com", auth) == "speech"
    assert (
        egs.create_gpr_template("night", "east", 8, 1, 80, "", "", "8h", 50, False, True, True, None, auth)
        == "night"
    )
    assert egs.delete_gpr_template("night", auth) == "night"
    assert egs.delete_workspace("speech", auth).workspace_name == "speech"
    assert len(site.log()) == before + 4


def test_a_secret_that_was_lost_is_not_asked_for_again(auth, site):
    """Its text is in the lost answer alone: whoever wants a key makes another, under another name."""
    before = len(site.log())
    with pytest.raises(exceptions.ServerUnreachable):
        egs.create_api_key("ci", "Owner", "2026-12-31", authenticated_session=auth)
    assert len(site.log()) == before + 1
