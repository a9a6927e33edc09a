"""Pages read Git beside the event loop: while one reads, every other caller is answered (A4, D13)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from reconciler.store.git.git_store import GitStore
from tests.portal.pages.test_documents import kept
from tests.support.portal import Site

READS = (
    "commit",
    "log",
    "diff",
    "read",
    "read_path",
    "sizes",
    "last_change",
    "fetch",
    "is_ancestor",
    "parent",
)
PAGES = (
    "/", "/calendar", "/requests", "/requests/new", "/requests/vision/waits", "/workspaces", "/workspaces/vision",
    "/workloads", "/inventory", "/inventory/east/h100-1", "/events", "/alerts", "/usage", "/promises", "/admin",
    "/admin/queue", "/admin/approvals", "/admin/approvals/vision/asks", "/admin/clusters", "/admin/clusters/east",
    "/admin/nodes/east/h100-1", "/admin/health", "/admin/workspaces", "/admin/workspaces/vision",
    "/admin/policies/vision", "/admin/templates/small", "/admin/bindings/vision", "/admin/usage",
    "/admin/people", "/admin/problems", "/admin/insights", "/admin/lab", "/admin/history",
    "/admin/history?path=clusters/east.yaml", "/requests?at=1m",
)  # fmt: skip
FORMS = (
    ("/admin/workspaces/vision", {"quota": "8"}, "slices/vision/slice.yaml"),
    ("/admin/templates/small", {"nodes": "3"}, "templates/small.yaml"),
    (
        "/admin/templates/new",
        {"name": "night", "nodes": "2", "duration": "8h", "shape": "H100-80GB"},
        "templates/night.yaml",
    ),
    ("/admin/policies/vision", {"waiting": "3"}, "slices/vision/slice.yaml"),
    ("/admin/bindings/vision", {"templates-east": "small", "default-east": "small"}, "bindings/vision.yaml"),
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("site"))
    made.settle()
    made.file("vision/runs", nodes=4, duration="2h", clusters=["east"])
    made.settle()
    made.file("vision/waits", nodes=4, duration="1h", clusters=["east"])
    made.file("vision/asks", nodes=4, duration="1h", clusters=["east"], gpusPerNode=8, priority=250)
    made.pass_time(20)
    yield made
    made.close()


@pytest.fixture
def on_the_loop(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Reads of Git that an event loop waited for."""
    found: list[str] = []

    def told(name: str, read: Callable[..., Any]) -> Callable[..., Any]:
        def reading(*given: Any, **named: Any) -> Any:
            try:
                asyncio.get_running_loop()
                found.append(name)
            except RuntimeError:
                pass
            return read(*given, **named)

        return reading

    for name in READS:
        monkeypatch.setattr(GitStore, name, told(name, getattr(GitStore, name)))
    return found


@pytest.mark.parametrize("path", PAGES)
def test_a_page_reads_git_beside_the_loop(site: Site, on_the_loop: list[str], path: str) -> None:
    answer = site.client().get(path, headers={"Accept": "text/html"})
    assert answer.status_code == 200, answer.text[:500]
    assert on_the_loop == []


@pytest.mark.parametrize(("path", "form", "file"), FORMS)
def test_a_form_that_is_tried_reads_git_beside_the_loop(
    site: Site, on_the_loop: list[str], path: str, form: dict[str, str], file: str
) -> None:
    client, html = site.client(), {"Accept": "text/html"}
    typed = {**kept(client.get(path, headers=html).text), **form}
    answer = client.post(path, data={"key": "", "do": "check", **typed}, headers=html)
    assert answer.status_code == 200, answer.text[:500]
    assert file in answer.text
    assert on_the_loop == []
