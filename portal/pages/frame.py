"""What surrounds every page: who is logged in, the workspace in view, where one can go, and how old the data is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from fastapi import Request

from portal.http.below_prefix import prefix_of
from portal.http.context import Parts
from portal.identity.callers import Caller
from portal.live.live_stream import sentence
from portal.views.view import View

Theme = Literal["", "light", "dark"]
THEMES: dict[str, Theme] = {"light": "light", "dark": "dark"}
THEME, TIMES, WORKSPACE = "egs-theme", "egs-times", "egs-workspace"
"""Names of the cookies in which a browser keeps what its reader chose."""


@dataclass(frozen=True, slots=True)
class Place:
    """An entry of the navigation."""

    path: str
    text: str
    icon: str
    has_below: bool = True
    """Whether pages below its path belong to it."""
    others: tuple[str, ...] = ()
    """Beginnings of other paths that belong to it."""


PLACES = (
    Place("/", "Home", "home"),
    Place("/calendar", "Calendar", "calendar"),
    Place("/requests", "GPU requests", "requests"),
    Place("/workspaces", "Workspaces", "workspaces"),
    Place("/jobs", "Jobs", "jobs"),
    Place("/workloads", "AI workloads", "workloads"),
    Place("/endpoints", "Endpoints", "endpoints"),
    Place("/inventory", "Inventory", "inventory"),
    Place("/events", "Events", "events", others=("/alerts",)),
    Place("/usage", "Usage", "usage"),
    Place("/promises", "Promises", "promises"),
)
ADMIN_PLACES: tuple[Place, ...] = (
    Place("/admin", "Overview", "promises", has_below=False),
    Place("/admin/queue", "Queue", "queue"),
    Place("/admin/approvals", "Approvals", "approvals"),
    Place("/admin/clusters", "Clusters", "clusters", others=("/admin/nodes/",)),
    Place("/admin/health", "GPU health", "health"),
    Place("/admin/insights", "Insights", "insights"),
    Place("/admin/workspaces", "All workspaces", "workspaces"),
    Place(
        "/admin/policies",
        "Policies",
        "policies",
        others=("/admin/templates", "/admin/bindings", "/admin/lab"),
    ),
    Place("/admin/usage", "Chargeback", "usage"),
    Place("/admin/people", "People", "people"),
    Place("/admin/problems", "Problems", "problems", others=("/admin/trust",)),
    Place("/admin/history", "History", "history"),
)


@dataclass(frozen=True, slots=True)
class Frame:
    """Of one page for one caller."""

    prefix: str
    path: str
    theme: Theme
    local_times: bool
    caller: Caller | None = None
    main: str = ""
    status: str = ""
    age_s: int = 0
    stale: str = ""
    """Why nothing can be changed now, in a sentence; empty: all is well."""
    workspace: str = ""
    """The one in view; empty: all of the caller's."""
    workspaces: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()
    admin_places: tuple[Place, ...] = ()
    session_ends_at: str = ""
    at: str = ""
    """The past state that is shown, as the address names it; empty: the present one."""
    past_at: datetime | None = None
    """The instant of that state."""

    def is_at(self, place: Place) -> bool:
        """Whether the page is there or below."""
        is_below = place.path != "/" and self.path.startswith(f"{place.path}/")
        is_other = self.path.startswith(place.others)
        return self.path == place.path or (place.has_below and is_below) or is_other


def bare_frame(request: Request) -> Frame:
    """For pages without a caller: logging in, and errors."""
    chosen = request.cookies
    return Frame(
        prefix=prefix_of(request),
        path=request.scope["path"],
        theme=THEMES.get(chosen.get(THEME, ""), ""),
        local_times=chosen.get(TIMES) == "local",
    )


def frame_of(request: Request, parts: Parts, view: View, caller: Caller) -> Frame:
    bare, ready = bare_frame(request), parts.reads.ready()
    mine = workspaces_of(view, caller)
    wanted = request.query_params.get("workspace", request.cookies.get(WORKSPACE, ""))
    return Frame(
        prefix=bare.prefix,
        path=bare.path,
        theme=bare.theme,
        local_times=bare.local_times,
        caller=caller,
        main=view.main,
        status=view.status,
        age_s=int(parts.reads.age_s),
        stale="" if ready.ok else sentence(ready.message),
        workspace=wanted if wanted in mine else "",
        workspaces=mine,
        places=PLACES,
        admin_places=ADMIN_PLACES if caller.is_admin else (),
        at="" if view.past is None else request.query_params.get("at", ""),
        past_at=None if view.past is None else view.facts.at,
        session_ends_at="" if caller.expires is None else f"{caller.expires:%Y-%m-%dT%H:%M:%SZ}",
    )


def workspaces_of(view: View, caller: Caller) -> tuple[str, ...]:
    """Those that the caller may see, sorted."""
    return tuple(sorted(name for name in view.wanted.slices if caller.may_see(name)))
