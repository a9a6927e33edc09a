"""The address of every page of the portal, found as the application finds them."""

from __future__ import annotations

import re

from fastapi.routing import APIRoute

from portal.http.app import found_pages

OF_PATHS = {
    "slice": "vision", "slice_": "vision", "workspace": "vision", "cluster": "east",
    "node": "h100-1", "pool": "h100",
}  # fmt: skip
"""A value for each parameter of a path; pages with other parameters are reached by links alone."""
NAMES = {
    "jobs": "train",
    "endpoints": "chat",
    "inventory": "h100-1",
    "requests": "runs",
    "workspaces": "vision",
    "templates": "small",
}
"""Values for a parameter `name`, by a part of the path before it."""
IDS = {"workloads": "vision/runs"}
"""Values for a parameter `id`, by a part of the path before it."""
NOT_PAGES = ("/docs", "/static/", "/login/with", ".csv", "/queue/change", "/history/undo")
"""Also what is shown only with a query."""
ASKED = (
    "/calendar?need=2&colour=workspace",
    "/palette?q=when+are+2+nodes+free",
    "/requests/new?nodes=2&duration=6h",
)
"""Pages that show more with a query."""


def paths() -> list[str]:
    """Of every page, with an example for each of its parameters."""
    routes = [route for router in found_pages() for route in router.routes if isinstance(route, APIRoute)]
    found = {route.path.replace(":path", "") for route in routes if "GET" in (route.methods or ())}
    pages = [path for path in found if not any(part in path for part in NOT_PAGES)]
    return sorted([*(address for path in pages if (address := _filled(path))), *ASKED])


def _filled(path: str) -> str:
    """Empty: a parameter is unknown."""
    names = (name for part, name in NAMES.items() if part in path)
    ids = (id_ for part, id_ in IDS.items() if part in path)
    known = {**OF_PATHS, "name": next(names, ""), "id": next(ids, "")}
    asked = re.findall(r"{(\w+)}", path)
    return path.format_map(known) if all(known.get(each) for each in asked) else ""
