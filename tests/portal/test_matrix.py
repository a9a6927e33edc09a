"""Who gets in where (B7, B10, A1): every path × role × own or another's slice × keys that open nothing.

Deny by default: a path that TABLE does not have fails the test, so nothing is served that nobody thought about.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx
import pytest

from portal.identity.sessions import Session, issue
from schemas.reading.yaml_text import dump
from tests.support.endpoints import document as endpoint
from tests.support.endpoints import version
from tests.support.portal import HEAD, KEYS, Site, api_key, template
from tests.support.world import gpr, gpr_path, project, slice_

Side = Literal["own", "other"]
Want = Literal["in", "senseless", "refused", "hidden", "nobody"]
"""Done, or in conflict with what is; 422, 403, 404, 401."""

ROLES: Mapping[str, str] = {
    "Viewer": "bo-viewer", "Editor": "bo-editor", "Owner": "olga-owner", "admin": "ada-owner", "group": "",
}  # fmt: skip
"""By which key somebody comes. `group` comes by a login: on no list, Editor of the own slice by a group."""
NOBODY = {"without anything": None, "revoked": "bo-revoked", "expired": "bo-expired", "deleted": "bo-owner"}
CY = {"email": "cy@example.com"}
SLICE: Mapping[Side, str] = {"own": "vision", "other": "nlp"}
DOOMED: Mapping[Side, str] = {"own": "doomed", "other": "distant"}
LOOSE: Mapping[Side, str] = {"own": "loose", "other": "far"}
"""Slices that are taken away, and such from which things are."""

Rule = Callable[[str, Side], Want]


def _open(role: str, side: Side) -> Want:
    """Anybody, also who shows nothing."""
    return "in"


def _known(role: str, side: Side) -> Want:
    """Whoever is known; they get what is theirs."""
    return "in"


def _sees(role: str, side: Side) -> Want:
    """Whoever may look into the slice."""
    return "in" if side == "own" or role == "admin" else "hidden"


def _from(*roles: str) -> Rule:
    """Whoever sees the slice and is one of these there; admins anywhere."""

    def rule(role: str, side: Side) -> Want:
        seen = _sees(role, side)
        return seen if seen == "hidden" or role in (*roles, "admin") else "refused"

    return rule


def _admins(role: str, side: Side) -> Want:
    """What belongs to all slices is changed by admins."""
    return "in" if role == "admin" else "refused"


def _asks(role: str, side: Side) -> Want:
    """A new slice is asked for by who may write in the whole project, with what they came with."""
    return "refused" if role in ("Viewer", "Editor") else "in"


def _gone(role: str, side: Side) -> Want:
    """It is not there, for nobody."""
    return "hidden"


WORKS = _from("Editor", "Owner", "group")


def _makes_keys(role: str, side: Side) -> Want:
    """By a key that carries all of its person; another's slice is as one that is not there."""
    if role == "admin":
        return "in"
    return "senseless" if side == "other" else "refused" if role in ("Viewer", "Editor") else "in"


def _takes_away(role: str, side: Side) -> Want:
    """Admins; nobody sees this slice by a group, for what the project names stays."""
    return "hidden" if role == "group" else _from()(role, side)


OWNS = _from("Owner")
ADMIN_OF = _from()


@dataclass(frozen=True)
class Path:
    """How a path is asked, and who gets in. `{slice}`, `{id}` and `{n}` (a new number) are filled in."""

    rule: Rule
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    slices: Mapping[Side, str] = field(default_factory=lambda: SLICE)
    is_open: bool = False
    """Answers also who shows nothing."""
    done: Want = "in"
    """What comes of it for those who get in."""

    def want(self, role: str, side: Side) -> Want:
        """What comes of it."""
        found = self.rule(role, side)
        return self.done if found == "in" else found


WISH = {
    "sliceName": "{slice}", "numberOfGPUs": 8, "numberOfGPUNodes": 1, "gpuShape": "H100-80GB", "exitDuration": "1h",
}  # fmt: skip
WINDOW = {"clusterName": "east", "begin": "2099-12-01T06:00:00Z", "end": "2099-12-01T08:00:00Z"}
TEMPLATE = {
    "name": "t{n}",
    "gpuShape": "H100-80GB",
    "numberOfGPUs": 8,
    "numberOfGPUNodes": 1,
    "exitDuration": "1h",
}
BOUND = {
    "workspaceName": "{slice}",
    "clusters": [{"clusterName": "east", "defaultTemplateName": "small", "templates": ["small"]}],
}
NAMED = {"workspaceName": "{slice}"}
IN_EAST = {"workspaceName": "{slice}", "clusterName": "east"}
SERVED = {"versions": [version()], "weights": {"v1": 100}}
JOB = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "first"}}
OF_SLICE, OF_ID = {"sliceName": "{slice}"}, {"gprId": "{id}"}

API = "/api/v1"
TABLE: Mapping[str, Path] = {
    "GET /healthz": Path(_open, is_open=True),
    "GET /readyz": Path(_open, is_open=True),
    "GET /openapi.json": Path(_open, is_open=True),
    "GET /docs": Path(_open, is_open=True),
    "POST /hooks/push": Path(_gone, is_open=True),
    "POST /auth": Path(_open, body={}, is_open=True, done="senseless"),
    "GET /auth": Path(_known),
    "POST /auth/ticket": Path(_known),
    "GET /auth/config": Path(_open, is_open=True),
    "GET /auth/login": Path(_gone, is_open=True),
    "GET /auth/callback": Path(_gone, is_open=True),
    "POST /auth/logout": Path(_open, is_open=True),
    "POST /gpr": Path(WORKS, body={**WISH, "gprName": "new-{n}"}),
    "PUT /gpr": Path(WORKS, body={"gprId": "{id}", "priority": 120}),
    "DELETE /gpr": Path(WORKS, OF_ID),
    "POST /gpr/restore": Path(WORKS, body={"gprId": "{id}"}),
    "GET /gpr": Path(_sees, OF_ID),
    "GET /gpr/list": Path(_sees, OF_SLICE),
    "GET /gpr/why": Path(_sees, OF_ID),
    "GET /gpr/watch": Path(_sees, OF_ID),
    "POST /gpr/waittime": Path(_sees, body=WISH),
    "GET /watch": Path(_sees, OF_SLICE),
    "GET /live": Path(_known),
    "GET /queue": Path(_sees, OF_SLICE),
    "POST /queue/move": Path(ADMIN_OF, body={"gprId": "{slice}/second", "to": "last"}),
    "GET /plan": Path(_known),
    "POST /whatif/policy": Path(_admins, body={"scheduling": {"order": "shortest-service"}}),
    "POST /whatif": Path(_sees, body={"changes": [{"do": "end", "gprId": "{id}"}]}),
    "GET /calendar": Path(_sees, OF_SLICE),
    "GET /problems": Path(_admins),
    "GET /approvals": Path(_known),
    "POST /approvals": Path(
        ADMIN_OF, body={"gprId": "{id}", "decision": "approve", "specDigest": "sha256:" + "0" * 64}
    ),
    "GET /inventory": Path(_sees, OF_SLICE),
    "GET /inventory/list": Path(_known),
    "POST /inventory/clear": Path(_admins, body={"clusterName": "east", "nodeName": "h100-1"}),
    "POST /inventory/maintenance": Path(_admins, body=WINDOW),
    "DELETE /inventory/maintenance": Path(_admins, body=WINDOW),
    "GET /workloads": Path(_sees, OF_SLICE),
    "POST /workloads": Path(WORKS, body={"name": "job-{n}", **OF_SLICE, "gprId": "{id}", "manifests": [JOB]}),
    "DELETE /workloads": Path(WORKS, {"name": "{slice}/nothing"}, done="hidden"),
    "GET /workloads/{id:path}": Path(_sees),
    "GET /workloads/{id:path}/pods": Path(_sees),
    "GET /workloads/{id:path}/diagnosis": Path(_sees),
    "GET /metrics/gpus": Path(_sees, OF_SLICE),
    "GET /metrics/range": Path(_sees, {"workload": "{id}"}),
    "GET /alerts": Path(_sees, OF_SLICE),
    "GET /usage": Path(_known),
    "GET /usage/requests": Path(_sees, OF_SLICE),
    "GET /insights": Path(_known),
    "GET /advice/{name}": Path(_sees),
    "GET /promises": Path(_open, is_open=True),
    "GET /blame": Path(_sees, OF_ID),
    "GET /diff": Path(_known, {"from": "0m"}),
    "GET /undo": Path(_gone, {"commit": "f" * 40}),
    "POST /undo": Path(_gone, body={"commit": "f" * 40}),
    "GET /events": Path(_sees, {"slice": "{slice}"}),
    "GET /events/stream": Path(_sees, {"slice": "{slice}"}),
    "GET /writes/{id}": Path(_gone),
    "POST /slice-workspace": Path(
        _asks, body={"workspaceName": "new-{n}", "clusters": ["east"], "namespaces": ["new-{n}"]}
    ),
    "PUT /slice-workspace": Path(OWNS, body={**NAMED, "description": "number {n}"}),
    "DELETE /slice-workspace": Path(_takes_away, NAMED, slices=DOOMED),
    "GET /slice-workspace": Path(_sees, NAMED),
    "GET /slice-workspace/list": Path(_known),
    "POST /slice-workspace/detach": Path(ADMIN_OF, body={**NAMED, "clusterName": "west"}, slices=LOOSE),
    "POST /slice-workspace/kube-config": Path(WORKS, body=IN_EAST, done="senseless"),
    "POST /kube-config": Path(WORKS, body=IN_EAST, done="senseless"),
    "GET /workspace-policies": Path(_known),
    "GET /workspace-policies/{name}": Path(_sees),
    "PUT /workspace-policies/{name}": Path(ADMIN_OF, body={"maxGPRs": 30}),
    "POST /gpr-template": Path(_admins, body=TEMPLATE),
    "PUT /gpr-template": Path(_admins, body={**TEMPLATE, "name": "small"}),
    "DELETE /gpr-template": Path(_admins, {"gprTemplateName": "doomed-{slice}"}),
    "GET /gpr-template": Path(_known, {"gprTemplateName": "small"}),
    "GET /gpr-template/list": Path(_known),
    "POST /gpr-template-binding": Path(ADMIN_OF, body=BOUND),
    "PUT /gpr-template-binding": Path(ADMIN_OF, body=BOUND),
    "DELETE /gpr-template-binding": Path(ADMIN_OF, {"bindingName": "{slice}"}, slices=LOOSE),
    "GET /gpr-template-binding": Path(_sees, {"bindingName": "{slice}"}),
    "GET /gpr-template-binding/list": Path(_known),
    "POST /api-key": Path(_makes_keys, body={"name": "k{n}", "role": "Viewer", "workspaceName": "{slice}"}),
    "DELETE /api-key": Path(
        lambda role, side: "in" if role == "admin" else "hidden", body={"name": "cy-editor"}
    ),
    "GET /api-key/list": Path(_sees, NAMED),
    "GET /tables/gprs": Path(_sees, OF_SLICE),
    "GET /tables/slices": Path(_known),
    "GET /tables/requests": Path(_known),
    "GET /tables/jobs": Path(_sees, OF_SLICE),
    "POST /endpoints": Path(WORKS, body={"name": "serves-{n}", **OF_SLICE, "gprId": "{id}", "spec": SERVED}),
    "POST /endpoints/{slice_name}/{name}/promote": Path(WORKS, body={"version": "none"}, done="senseless"),
    "POST /endpoints/{slice_name}/{name}/rollback": Path(WORKS, body={}, done="senseless"),
    "GET /endpoints/{slice_name}/{name}/replicas": Path(_sees, done="senseless"),
    "GET /tables/endpoints": Path(_sees, OF_SLICE),
    "GET /tables/clusters": Path(_known),
    "GET /tables/nodes": Path(_known),
    "GET /tables/capacity": Path(_known),
    "GET /tables/gpr": Path(_sees, {"name": "{slice}/first"}),
    "GET /tables/slice": Path(_sees, {"name": "{slice}"}),
    "GET /tables/request": Path(lambda role, side: "in" if role == "admin" else "hidden", {"name": "wish"}),
    "GET /tables/job": Path(_sees, {"name": "{slice}/first"}),
    "GET /tables/endpoint": Path(_sees, {"name": "{slice}/chat"}),
    "GET /tables/cluster": Path(_known, {"name": "east"}),
    "GET /tables/node": Path(_known, {"name": "east/h100-1"}),
}


def files() -> dict[str, str]:
    """On top of the usual fleet: a group, requests that wait, slices and templates that may go."""
    own, theirs = ("vision", "doomed", "loose"), ("nlp", "distant", "far")
    asked = {"requester": {"email": "cy@example.com"}, "clusters": ["east"], "namespaces": ["wish"]}
    found = {
        "project.yaml": project(groups=[{"group": "team", "role": "Editor", "slices": ["vision", "loose"]}]),
        "requests/wish.yaml": document("WorkspaceRequest", "wish", asked),
    }
    for name in (*own, *theirs):
        if name not in SLICE.values():
            people = {"owners": [{"email": "olga@example.com"}]} if name in own else {"members": [CY]}
            found[f"slices/{name}/slice.yaml"] = slice_(name, ("east", "west"), **people)
        bound = {"cluster": "east", "default": "small", "templates": ["small"]}
        found[f"bindings/{name}.yaml"] = document("GPRTemplateBinding", name, {"clusters": [bound]})
    for key in ("bo-viewer", "bo-editor"):
        found[f"keys/{key}.yaml"] = api_key(key) + "".join(f"    - {name}\n" for name in own[1:])
    for name in SLICE.values():
        found[f"templates/doomed-{name}.yaml"] = template(f"doomed-{name}")
        for each in ("running", "first", "second"):
            found[gpr_path(f"{name}/{each}")] = gpr(name, each, nodes=2, gpusPerNode=8)  # for all endpoints
        spec = {"slice": name, "gpr": "first", "manifests": [JOB]}
        found[f"slices/{name}/workloads/first.yaml"] = document("Workload", "first", spec)
        found[f"slices/{name}/endpoints/chat.yaml"] = endpoint("chat", name, gpr="first")
    return found


def document(kind: str, name: str, spec: Mapping[str, Any]) -> str:
    return dump({**HEAD, "kind": kind, "metadata": {"name": name}, "spec": spec})


@dataclass
class World:
    """A running server, and how to ask it."""

    site: Site
    http: httpx.Client
    numbers: Iterator[int]

    def shown(self, role: str) -> dict[str, str]:
        """What somebody of that role shows."""
        if role == "group":
            logins = self.site.portal.parts.logins
            ends = self.site.now + logins.session_life
            return bearer(issue(logins.signer, Session("gus@example.com", "Gus", ends, groups=("team",))))
        return bearer(KEYS[ROLES[role]])

    def ask(self, route: str, path: Path, side: Side, headers: Mapping[str, str]) -> Want | int:
        """What came of it, in the words of the table; else the status."""
        slice_name = path.slices[side]
        ids = {name: id_ for id_, name in self.site.view.ids.items()}
        values = {"slice": slice_name, "id": ids.get(f"{slice_name}/first", ""), "n": str(next(self.numbers))}
        method, _, where = route.partition(" ")
        where = where.replace("{id:path}", f"{slice_name}/first").replace(
            "{slice_name}/{name}", f"{slice_name}/chat"
        )
        where = where.replace("{name}", slice_name).replace("{id}", "0" * 32)
        url = where if where in NOT_API else f"{API}{where}"
        body = None if path.body is None else filled(path.body, values)
        query = filled(path.query, values)
        with self.http.stream(method, url, params=query, json=body, headers=dict(headers)) as answer:
            status = answer.status_code
        words: Mapping[int, Want] = {
            401: "nobody",
            403: "refused",
            404: "hidden",
            409: "in",
            422: "senseless",
        }
        return "in" if status < 400 else words.get(status, status)


NOT_API = ("/healthz", "/readyz", "/openapi.json", "/docs", "/hooks/push")


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


def filled(content: Any, values: Mapping[str, str]) -> Any:
    if isinstance(content, Mapping):
        return {name: filled(value, values) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [filled(each, values) for each in content]
    return content.format(**values) if isinstance(content, str) else content


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    site = Site(tmp_path_factory.mktemp("site"), files())
    site.commit({"keys/bo-owner.yaml": None})
    site.settle()
    with site.server() as url, httpx.Client(base_url=url, timeout=30) as http:
        yield World(site, http, itertools.count(1))
    site.close()


def routes_of(site: Site) -> set[str]:
    """Method and path of all that the application serves to programs; tests/portal/pages ask the pages."""
    found = set[str]()
    for route in site.portal.app.routes:
        if getattr(getattr(route, "endpoint", None), "__module__", "").startswith("portal.pages"):
            continue
        path = str(getattr(route, "path", route)).removeprefix(API)
        found |= {
            f"{method} {path}" for method in getattr(route, "methods", None) or {"?"} if method != "HEAD"
        }
    return found


def test_nothing_is_served_that_is_not_in_the_table(world: World):
    assert routes_of(world.site) == TABLE.keys()


@pytest.mark.parametrize("route", TABLE)
def test_who_gets_in(world: World, route: str):
    path = TABLE[route]
    sides: tuple[Side, ...] = ("other", "own")
    cells = [(role, side) for role in (*(r for r in ROLES if r != "admin"), "admin") for side in sides]
    got = {cell: world.ask(route, path, cell[1], world.shown(cell[0])) for cell in cells}
    assert got == {(role, side): path.want(role, side) for role, side in cells}


@pytest.mark.parametrize("route", TABLE)
def test_what_opens_nothing_opens_nothing_anywhere(world: World, route: str):
    path = TABLE[route]
    session = Session("ada@example.com", "Ada", world.site.now, groups=("team",))
    headers = {name: {} if key is None else bearer(KEYS[key]) for name, key in NOBODY.items()}
    headers["an ended session"] = bearer(issue(world.site.portal.parts.logins.signer, session))
    got = {name: world.ask(route, path, "own", shown) for name, shown in headers.items()}
    want: Want = path.want("nobody", "own") if path.is_open else "nobody"
    assert got == dict.fromkeys(headers, want)
