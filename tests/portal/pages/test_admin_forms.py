"""Forms of admins' pages: what each writes, and how it refuses (E5, G4, H14)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from httpx import Response

from tests.support.portal import Site
from tests.support.world import gpr, gpr_path, slice_

WORD, EAST = "approvals/vision/big/ada.yaml", "clusters/east.yaml"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """`vision/big` asks for more than its quota."""
    limited = slice_("vision", ("east", "west"), quota={"gpus": 8}, owners=[{"email": "olga@example.com"}])
    made = Site(tmp_path, {"slices/vision/slice.yaml": limited})
    made.file("vision/big", nodes=2)
    made.settle()
    yield made
    made.close()


def fields(site: Site, path: str, form: str = "") -> dict[str, str]:
    """The hidden fields of a form, as a browser sends them."""
    html = site.client().get(path, headers={"Accept": "text/html"}).text
    begin = html.index(f'id="{form}"') if form else 0
    found = re.findall(
        r'type="hidden" name="(\w+)" value="([^"]*)"', html[begin : html.index("</form>", begin)]
    )
    return {name: unescape(value) for name, value in found}


def send(site: Site, path: str, form: Mapping[str, Any], who: str = "ada-owner") -> Response:
    client = site.client(who)
    return client.post(
        path, data={"key": "", **form}, headers={"Accept": "text/html"}, follow_redirects=False
    )


def decide(site: Site, who: str = "ada-owner", name: str = "big", **more: str) -> Response:
    path = f"/admin/approvals/vision/{name}"
    hidden = fields(site, path, "decide")
    return send(site, path, {**hidden, "decision": "approve", "reason": "", "days": "7", **more}, who)


def test_an_approval_lands_and_says_where(site: Site) -> None:
    """E5: bound to what was shown, with a limit and an end."""
    done = decide(site, reason="the deadline is real", gpus="16")
    assert done.status_code == 303, done.text
    text = site.main(WORD) or ""
    assert "reason: the deadline is real" in text
    assert "gpus: 16" in text
    assert "notAfter: 2026-11-28T08:00:00Z" in text
    page = site.client().get(done.headers["Location"], headers={"Accept": "text/html"}).text
    assert "The change is on main" in page


def test_a_click_twice_writes_once(site: Site) -> None:
    path = "/admin/approvals/vision/big"
    form = {**fields(site, path, "decide"), "decision": "approve", "days": "7"}
    before = len(site.log())
    assert {send(site, path, form).status_code for _ in range(2)} == {303}
    assert len(site.log()) == before + 1


def test_a_rejection_needs_a_sentence(site: Site) -> None:
    refused = decide(site, decision="reject")
    assert refused.status_code == 422
    assert "say in a sentence why" in refused.text
    assert decide(site, decision="reject", reason="next quarter").status_code == 303
    assert "decision: reject" in (site.main(WORD) or "")


@pytest.mark.parametrize("seen", [False, True], ids=["not read yet", "read by the controller"])
def test_what_changed_meanwhile_is_shown_and_decided_again(site: Site, seen: bool) -> None:
    """E5, D14: the difference, and what was typed; nothing is written until it is decided again."""
    path = "/admin/approvals/vision/big"
    form = {**fields(site, path, "decide"), "decision": "approve", "reason": "for the paper", "days": "7"}
    site.file("vision/big", nodes=4)
    if seen:
        site.settle()
    refused = send(site, path, form)
    assert refused.status_code == 409
    assert "has changed since it was shown to you" in refused.text
    assert re.search(r"Nodes</th><td><del>2</del></td><td><ins>4</ins>", refused.text)
    assert ">for the paper</textarea>" in refused.text
    assert site.main(WORD) is None
    shown = refused.text[refused.text.index('id="decide"') :]
    again = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', shown))
    assert send(site, path, {**form, **{k: unescape(v) for k, v in again.items()}}).status_code == 303


def test_nobody_approves_their_own(site: Site) -> None:
    """E5."""
    site.commit({gpr_path("vision/own"): gpr("vision", "own", nodes=2)}, "Ada <ada@example.com>")
    site.settle()
    refused = decide(site, name="own")
    assert refused.status_code == 403
    assert "OwnRequest" in refused.text
    assert "may not approve their own request" in refused.text


@pytest.mark.parametrize(
    ("more", "says"),
    [
        pytest.param({"gpus": "eight"}, "gpus: this must be a whole number", id="no number"),
        pytest.param({"gpus": "1"}, "the limit is below what the request needs", id="too low a limit"),
        pytest.param({"decision": "maybe"}, "decision: this must be", id="half a word"),
    ],
)
def test_a_word_that_makes_no_sense(site: Site, more: dict[str, str], says: str) -> None:
    refused = decide(site, **more)
    assert refused.status_code in (409, 422)
    assert says in unescape(refused.text)
    assert site.main(WORD) is None


def test_a_window_is_planned_and_removed(site: Site) -> None:
    """G4: the document gets the window, and loses exactly this one."""
    before = site.main(EAST)
    window = {
        "begin": "2026-12-01T06:00",
        "end": "2026-12-01T08:00",
        "pools": "h100",
        "reason": "new <switches>",
    }
    done = send(site, "/admin/clusters/east/maintenance", window)
    assert done.status_code == 303, done.text
    assert 'begin: "2026-12-01T06:00:00Z"' in (site.main(EAST) or "")
    html = site.client().get("/admin/clusters/east", headers={"Accept": "text/html"}).text
    assert "new &lt;switches&gt;" in html
    hidden = fields(site, "/admin/clusters/east", "maintenance")
    assert send(site, "/admin/clusters/east/maintenance/remove", hidden).status_code == 303
    assert site.main(EAST) == before


@pytest.mark.parametrize(
    ("more", "says"),
    [
        pytest.param(
            {"end": "2026-12-01T05:00"}, "end: it must be after begin", id="it ends before it begins"
        ),
        pytest.param({"end": "soon"}, "end: a time reads like", id="no time"),
        pytest.param({"nodes": "h100-99"}, "cluster east has no h100-99", id="an unknown node"),
        pytest.param({"every": "1h"}, "every must be at least a day", id="it comes again too soon"),
    ],
)
def test_a_window_that_cannot_be(site: Site, more: dict[str, str], says: str) -> None:
    """The page says why and keeps what was typed."""
    before = site.main(EAST)
    window = {"begin": "2026-12-01T06:00", "end": "2026-12-01T08:00", "reason": "new switches", **more}
    refused = send(site, "/admin/clusters/east/maintenance", window)
    assert refused.status_code == 422
    assert says in unescape(refused.text)
    assert 'value="new switches"' in refused.text
    assert site.main(EAST) == before


def test_a_node_is_cleared_and_taken_out(site: Site) -> None:
    """H14: by the cluster's own document."""
    assert send(site, "/admin/nodes/east/h100-1/clear", {}).status_code == 303
    assert "node: h100-1" in (site.main(EAST) or "")
    out = {"end": "2026-11-28T08:00", "reason": "it hums"}
    assert send(site, "/admin/nodes/east/h100-1/out", out).status_code == 303
    assert "it hums" in (site.main(EAST) or "")
    site.settle()
    page = site.client().get("/admin/nodes/east/h100-1", headers={"Accept": "text/html"}).text
    assert "it hums" in page
    assert "Last said at" in page
    assert send(site, "/admin/nodes/east/nothing/clear", {}).status_code == 404
