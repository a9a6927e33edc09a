"""What holds for every page: axe-core finds nothing at level AA, in light, in dark and at 375 px, and every link leads
somewhere. conftest.py holds more: no error on the console, no violation of the CSP, nothing from another host."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

import pytest
import yaml
from playwright.sync_api import Page

from tests.browser.conftest import Visitor
from tests.support.endpoints import document as endpoint
from tests.support.endpoints import version
from tests.support.page_paths import paths
from tests.support.portal import Site
from tests.support.profile import drawn
from tests.support.world import cluster

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.slow]

ADMIN = "ada-owner"
DEAD = {400, 403, 404, 405, 422, 500}
"""Not 409: what cannot be undone says why."""
CONTRAST = {"runOnly": {"type": "rule", "values": ["color-contrast"]}}
"""All that colours decide."""
RULES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}}


OBJECTS = """
{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec: {template: {spec: {containers: [{name: main, resources: {limits: {nvidia.com/gpu: 8}}}]}}}
"""


SERVED = {"versions": [version("v1"), version("v2")], "weights": {"v1": 90, "v2": 10}}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Requests in every phase, a job, an endpoint, an alert, a maintenance, a broken file."""
    window = {"begin": "2026-11-23T08:00:00Z", "end": "2026-11-23T12:00:00Z", "reason": "rewiring"}
    head = {"apiVersion": "egs.dev/v1alpha1", "kind": "Workload", "metadata": {"name": "train"}}
    spec = {"slice": "vision", "gpr": "runs", "manifests": [*yaml.safe_load_all(OBJECTS)]}
    files = {
        "clusters/west.yaml": cluster("west", nodes=2, maintenance=[window]),
        "slices/vision/endpoints/chat.yaml": endpoint("chat", "vision", gpr="runs", **SERVED),
        "slices/vision/workloads/train.yaml": yaml.safe_dump({**head, "spec": spec}),
    }
    made = Site(tmp_path_factory.mktemp("site"), files)
    made.settle()
    made.file("vision/short", nodes=1, duration="30m")
    made.settle()
    made.pass_time(50)
    made.file("vision/runs", nodes=3, duration="2h", clusters=["east"])
    made.file("nlp/more", nodes=1, duration="1h")
    made.settle()
    made.file(
        "vision/waits", nodes=3, duration="1h", clusters=["east"], displayName="<script>alert(1)</script>"
    )
    made.file("vision/asks", nodes=4, duration="1h", clusters=["east"], gpusPerNode=8)
    made.commit({"slices/vision/gprs/bad.yaml": "kind: GPR\n"})
    made.settle()
    made.pass_time(40)
    yield made
    made.close()


@pytest.fixture(scope="module")
def url(site: Site) -> Iterator[str]:
    with site.server() as found:
        yield found


@cache
def axe() -> str:
    return (files("axe_playwright_python") / "axe.min.js").read_text()


def violations(page: Page, rules: object = RULES) -> list[str]:
    """What axe finds, as `rule: element`."""
    page.evaluate(axe())
    found: dict[str, Any] = page.evaluate("rules => axe.run(document, rules)", rules)
    return [
        f"{each['id']}: {node['html'][:120]}" for each in found["violations"] for node in each["nodes"][:3]
    ]


def faults(page: Page) -> Iterator[str]:
    """Of one page: on a desk in light and dark, at a zoom of 200 %, and on a phone."""
    page.set_viewport_size({"width": 1360, "height": 850})
    yield from violations(page)
    page.emulate_media(color_scheme="dark")
    yield from (f"dark: {each}" for each in violations(page, CONTRAST))
    page.emulate_media(color_scheme="light")
    for width in (680, 375):
        page.set_viewport_size({"width": width, "height": 812})
        over = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        if over > 0:
            yield f"{over} px too wide at {width} px"
    yield from (f"phone: {each}" for each in violations(page))


def test_axe_finds_nothing_and_no_page_is_too_wide(visitor, url: str) -> None:
    """Of one page in three for a change, drawn by its commit; of all after a merge."""
    admin: Visitor = visitor(url)
    admin.log_in(ADMIN, "/requests")
    found = {path: list(faults(admin.open(path))) for path in paths() if drawn(path, 6)}
    assert {path: told for path, told in found.items() if told} == {}


def test_every_link_leads_somewhere(site: Site) -> None:
    """Also those that only a menu or an empty table shows."""
    with site.client(ADMIN) as client:
        client.headers["Accept"] = "text/html"
        pages = {path: client.get(path) for path in paths()}
        assert {path: answer.status_code for path, answer in pages.items() if answer.status_code != 200} == {}
        links: dict[str, list[str]] = {}
        for path, answer in pages.items():
            for link in set(re.findall(r'href="(/[^"]*)"', answer.text)):
                links.setdefault(link.replace("&amp;", "&").partition("#")[0], []).append(path)
        dead = {
            link: on
            for link, on in links.items()
            if client.get(link, follow_redirects=False).status_code in DEAD
        }
    assert dead == {}
