"""What admins see, and that nobody else does (H8, E5, G1-G4, A11, A12, H4, H14)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

import pytest

from tests.support.admin_site import BAD, SERIAL, busy
from tests.support.portal import Site

PAGES = (
    "/admin",
    "/admin/approvals",
    "/admin/approvals/vision/big",
    "/admin/clusters",
    "/admin/clusters/east",
    "/admin/health",
    "/admin/queue",
    "/admin/workspaces",
    "/admin/workspaces/vision",
    "/admin/policies",
    "/admin/templates",
    "/admin/bindings",
    "/admin/usage",
    "/admin/people",
    "/admin/problems",
    "/admin/trust",
    "/admin/history",
    "/admin/insights",
    "/admin/lab",
    f"/admin/nodes/east/{BAD}",
)

NAMES = {"cluster": "east", "node": "h100-1", "name": "big"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = busy(tmp_path_factory.mktemp("site"))
    yield made
    made.close()


def page(site: Site, path: str, who: str = "ada-owner") -> str:
    """The page's text; its white space is one space."""
    answer = site.client(who).get(path, headers={"Accept": "text/html"})
    assert answer.status_code == 200, answer.text
    return re.sub(r"\s+", " ", unescape(answer.text))


def words(html: str) -> str:
    """Without tags."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html.partition('id="main"')[2]))


def ways(site: Site) -> Iterator[tuple[str, str]]:
    """Method and address of everything below /admin, with names of this fleet in it."""
    for route in site.portal.app.routes:
        path = str(getattr(route, "path", ""))
        if path == "/admin" or path.startswith("/admin/"):
            filled = re.sub(r"\{(\w+)(?::\w+)?\}", lambda found: NAMES.get(found.group(1), "vision"), path)
            for method in getattr(route, "methods", ()):
                yield method, filled


@pytest.mark.parametrize("who", ["bo-owner", "olga-owner", "cy-editor", "ada-editor", "ada-viewer"])
def test_nobody_else_gets_in(site: Site, who: str) -> None:
    """B10: every page and every form, whoever they are: 403 as a page, without a name of the fleet."""
    before, asked = site.log(), list(ways(site))
    assert len(asked) > len(PAGES)
    for method, path in asked:
        client = site.client(who)
        body = {"data": {"key": ""}} if method == "POST" else {}
        answer = client.request(method, path, headers={"Accept": "text/html"}, **body)
        assert answer.status_code == 403, f"{method} {path}: {answer.status_code}"
        assert "text/html" in answer.headers["Content-Type"]
        assert "Only admins" in answer.text
        assert "nlp/" not in answer.text
    assert site.log() == before


def test_the_way_there_is_shown_to_admins_alone(site: Site) -> None:
    assert 'href="/admin"' in page(site, "/requests")
    assert "/admin" not in page(site, "/requests", "bo-editor")


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_whole(site: Site, path: str) -> None:
    """A heading, its own entry marked, and no inline style or script."""
    html = page(site, path)
    assert html.count("<h1") == 1
    assert html.count('aria-current="page"') == 1
    assert "style=" not in html
    assert "<script>" not in html


def test_the_overview_tells_what_is_held_and_used(site: Site) -> None:
    """H8: allocation against use by pool, promises, and what needs an admin."""
    text = words(page(site, "/admin"))
    assert "24 of 64 GPUs" in text
    assert "2 of 2 promised starts" in text
    assert "1 node out of service" in text
    assert "1 request needs an approval" in text
    assert "1 document has a problem" in text
    east = re.search(r"east/h100 H100-80GB 48 50 % (\d+) %", text)
    assert east is not None, text
    assert 0 < int(east.group(1)) < 100
    assert "west/h100 H100-80GB 16 0 % — — " in text  # what nobody holds has no use, and not 0


def test_an_approval_shows_the_rule_and_the_figures(site: Site) -> None:
    """E5: what is asked for, which rule it breaks, and by how much."""
    text = words(page(site, "/admin/approvals"))
    assert "vision/big Quota exceeded an admin must approve: it asks for 40 GPUs" in text
    text = words(page(site, "/admin/approvals/vision/big"))
    assert "Nodes 5 GPUs per node 1" in text
    assert "it holds more than its workspace may without approval" in text
    assert "Holds 16 GPUs on 2 nodes" in text
    assert re.search(r"If it is approved .* vision/next \S+ \S+ later", text), text  # whom an approval delays


def test_what_needs_no_word_gets_no_form(site: Site) -> None:
    html = page(site, "/admin/approvals/nlp/tune")
    assert "Nothing to decide" in html
    assert "<textarea" not in html


def test_a_cluster_shows_its_nodes_and_their_calendar(site: Site) -> None:
    """G1, G3: who has each node until when, who gets it next, and which are in trouble."""
    text = words(page(site, "/admin/clusters/east"))
    assert "h100-1 h100 Ready nlp/tune Nov 21, 11:07" in text
    assert f"{BAD} h100 Unhealthy Xid 79 GPU 3 has Xid79" in text
    found = words(page(site, "/admin/clusters/east?state=trouble"))
    assert "1 node " in found
    assert "h100-1 h100" not in found
    assert "No node matches" in page(site, "/admin/clusters/east?q=nothing")
    assert site.client().get("/admin/clusters/none", headers={"Accept": "text/html"}).status_code == 404


def test_a_node_shows_verdicts_cards_and_checks(site: Site) -> None:
    """A11, A12, G2, H14: the agent's word by GPU and serial number, and the card's history."""
    text = words(page(site, f"/admin/nodes/east/{BAD}"))
    assert f"Xid 79 to do: reset {SERIAL}" in text
    assert text.count("Xid 48 Nov 21, 08:20") == 1
    assert "Nothing is planned on it" in text
    text = words(page(site, "/admin/nodes/east/h100-2"))
    assert "Held by vision/train until" in text
    assert "Before: NcclLatency passed" in text
    assert site.client().get("/admin/nodes/east/none", headers={"Accept": "text/html"}).status_code == 404


def test_health_shows_where_it_is_hot_and_what_fails_again(site: Site) -> None:
    """H4, H14: the hot GPU first, the fault in words, the card's outages, and what to do about the node."""
    html = page(site, "/admin/health")
    text = words(html)
    assert f"east/{BAD} Unhealthy Xid 79 GPU 3 has Xid79 reset" in text
    assert re.search(r"Request h100-\d GPU 3 1\d\d % of memory temperature 91 ", text), (
        text
    )  # the first row: over its limit
    assert f"{SERIAL}" in text
    assert '<td class="heat h5"' in html
    assert f'action="/admin/nodes/east/{BAD}/clear"' in html
    cool = page(site, "/admin/health?cluster=west")
    assert '<td class="heat h5"' not in cool
    assert "No GPU reports a fault" in cool
    assert "h100-4" not in words(page(site, "/admin/health?cluster=east&trouble=true"))


def test_chargeback_on_the_page_and_as_csv_is_the_same(site: Site) -> None:
    """H17: of every workspace, also of what runs now."""
    text = words(page(site, "/admin/usage"))
    rows = site.client().get("/admin/usage.csv").text.splitlines()
    assert rows[0] == "workspace,month,gpu_hours,amount,currency,leases"
    running = {row.split(",")[0]: row.split(",") for row in rows[1:] if ",running," in row}
    assert set(running) == {"vision", "nlp"}
    for name, row in running.items():
        assert re.search(rf"{name} {float(row[3]):,.2f} ", text), (text, row)


def test_people_have_their_roles_and_keys(site: Site) -> None:
    """C9, E5: who may approve what, with which keys; never a secret."""
    html = page(site, "/admin/people")
    text = words(html)
    assert "ada@example.com admin ada — — requests of others" in text
    assert re.search(r"olga@example.com owner vision — — olga-owner Owner", text)
    assert "bo-revoked Editor, Revoked" in text
    assert "egs_" not in html
    assert "olga" not in words(page(site, "/admin/people?q=cy@"))


def test_problems_say_where_and_what_to_do(site: Site) -> None:
    """K3: file, line, reason and fix; errors first."""
    text = words(page(site, "/admin/problems?severity=error"))
    assert "templates/broken.yaml 7 Bad value spec.nodes is 0: it must be at least 1" in text
    assert "write a number from 1 to 100000" in text
    assert "NeedsApproval" not in text
    assert "No problem matches" in page(site, "/admin/problems?q=nothing-like-it")


def test_trust_says_whom_it_believes(site: Site) -> None:
    """B11: whether main is verified, and what does not count."""
    text = words(page(site, "/admin/trust"))
    assert "Signatures on main are not verified here" in text
    assert "No change is held" in text
