"""A member's Secret stays empty, whoever is asked: the rule, our webhook, the API server's policies (B6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta

import cel
import pytest

from reconciler.clusters.kubernetes.api.api_client import Api, Json, Rejected
from reconciler.clusters.kubernetes.api.api_features import discover
from reconciler.clusters.kubernetes.tenancy import member_tokens
from reconciler.clusters.kubernetes.tenancy.member_tokens import Whose
from reconciler.clusters.kubernetes.tenancy.slice_objects import account_name, secret_name
from reconciler.clusters.kubernetes.tenancy.token_secrets import CONCERNS, REFUSED, is_refused
from schemas.documents.cluster import Admission
from tests.reconciler.clusters.kubernetes.judging import judged, without_patches
from tests.reconciler.clusters.kubernetes.tenants import BO, CY, as_user, ensured, opened, terms
from tests.support.kube import ON_NEW, ON_OLD, Plane, eventually

TOKENS = "kubernetes.io/service-account-token"
OTHERS = {"kubernetes.io/service-account.name": account_name(CY)}
SECRETS = "/api/v1/namespaces/vision-train/secrets"
MINE = secret_name(BO)
DATA = {"token": "eA=="}


def secret(name: str = MINE, kind: str = "Opaque", notes: Json | None = None, **more: object) -> Json:
    """One that is as `egs kubeconfig` makes it, unless more is said."""
    meta = {"name": name, "annotations": {"egs.dev/member": BO, **(notes or {})}}
    return {"apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": meta, **more}


@dataclass(frozen=True)
class Case:
    """A Secret in a slice's namespace."""

    secret: Json
    refused: bool
    before: Json | None = None


CASES = [
    pytest.param(Case(secret(), False), id="an empty one of ours"),
    pytest.param(Case(secret(kind=TOKENS, notes=OTHERS), True), id="another member's token, please"),
    pytest.param(Case(secret(notes=OTHERS), True), id="one that names an account"),
    pytest.param(Case(secret(data=DATA), True), id="one that holds something"),
    pytest.param(Case(secret(kind="example.com/mine"), True), id="one of another type"),
    pytest.param(Case(secret("kubeconfig-x", data=DATA), True), id="one of nobody's with such a name"),
    pytest.param(Case(secret("wandb", data=DATA), False), id="an admin's for the team"),
    pytest.param(Case(secret("my-kubeconfig-x", "example.com/t"), False), id="one whose name ends so"),
]
GOING = secret(data=DATA)
GOING["metadata"]["deletionTimestamp"] = "2026-11-21T08:00:00Z"
CHANGES = [
    pytest.param(Case(secret(data=DATA), True, secret()), id="one that is filled later"),
    pytest.param(Case(GOING, False, GOING), id="one on its way out, which may lose its finalizers"),
    pytest.param(Case(GOING, True), id="a new one that claims to be on its way out"),
]


def in_cel(item: Json, before: Json | None) -> bool:
    """By the text that policies carry."""
    request = {"operation": "CREATE" if before is None else "UPDATE"}
    known = {"object": item, "oldObject": before, "request": request}
    return bool(cel.evaluate(CONCERNS, known)) and bool(cel.evaluate(REFUSED, known))


@pytest.mark.parametrize("judge", [is_refused, in_cel])
@pytest.mark.parametrize("case", [*CASES, *CHANGES])
def test_a_secret(case: Case, judge: Callable[[Json, Json | None], bool]) -> None:
    assert judge(case.secret, case.before) is case.refused


# --- on real API servers ---


@pytest.fixture(scope="module")
def no_patches() -> Iterator[None]:
    """A webhook that changes no pod."""
    with without_patches():
        yield


def kept(plane: Plane) -> Iterator[Plane]:
    """Slice `vision` of Bo and Cy, and whoever keeps their Secrets empty on that server."""
    plane.wipe()
    with judged(plane.api, discover(plane.api), Admission()):
        slices = opened(plane.api)
        ensured(slices, terms("vision", "vision-train"))
        eventually(lambda: "MemberSecret: " in told(plane.api, secret(data=DATA), trial=True), "a refusal")
        yield plane
        slices.stop()


@pytest.fixture(scope="module")
def old(plane: Plane, no_patches: None) -> Iterator[Plane]:
    """1.20, which asks our webhook."""
    yield from kept(plane)


@pytest.fixture(scope="module")
def new(new_plane: Plane, no_patches: None) -> Iterator[Plane]:
    """1.36, which has policies."""
    yield from kept(new_plane)


SERVERS = [pytest.param("old", id="1.20", marks=ON_OLD), pytest.param("new", id="1.36", marks=ON_NEW)]


def told(api: Api, item: Json, *, trial: bool = False) -> str:
    """The refusal's text; empty: it was taken."""
    try:
        if trial:
            api._json("POST", SECRETS, {"dryRun": "All"}, item)
        else:
            api.apply(f"{SECRETS}/{item['metadata']['name']}", item)
    except Rejected as no:
        return str(no)
    return ""


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("case", CASES)
def test_a_server_says_the_same(case: Case, server: str, request: pytest.FixtureRequest) -> None:
    text = told(request.getfixturevalue(server).api, case.secret, trial=True)
    assert ("MemberSecret: " in text, bool(text)) == (case.refused, case.refused)


@pytest.mark.parametrize("server", SERVERS)
def test_a_member_gets_a_kubeconfig_and_nobody_elses_token(
    server: str, request: pytest.FixtureRequest
) -> None:
    """What was possible before: a token of another member, by one's own Secret, that outlives their leaving."""
    plane: Plane = request.getfixturevalue(server)
    bo = as_user(plane, BO)
    theft = secret(kind=TOKENS, notes=OTHERS)
    eventually(lambda: "MemberSecret: " in told(bo, theft), "Bo's rights, and what bounds them")
    assert plane.api.find(f"{SECRETS}/{MINE}") is None
    theft["metadata"]["deletionTimestamp"] = "2026-11-21T08:00:00Z"
    assert told(bo, theft), "a Secret is not on its way out because somebody says so"
    ticket = member_tokens.renewed(bo, Whose("vision", "vision-train", BO))
    assert member_tokens.token(bo, ticket, timedelta(minutes=10)).value
    for change in ({"data": DATA}, {"metadata": {"annotations": OTHERS}}):
        with pytest.raises(Rejected, match="MemberSecret: "):
            bo.merge(f"{SECRETS}/{MINE}", change)
    assert not plane.api.get(f"{SECRETS}/{MINE}").get("data")
