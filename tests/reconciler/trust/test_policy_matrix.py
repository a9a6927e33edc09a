"""Issue section 1 and 5: every actor × path × field × way of merging, on real Git; features D8, D11, E4, E5.

Each way brings all changes at once: verdicts are by path, and one landing shows them all.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from schemas.documents.approval import NAMESPACE, Approval, statement
from tests.reconciler.trust.own_changes import BASE, BEYOND_DOUBT, OWN
from tests.support.landing import Files, Land, base_files, person, rules
from tests.support.machinekeys import key
from tests.support.world import _document, cluster, gpr, gpr_path, parsed, project, slice_

ADMIN, OWNER, MEMBER, OTHER = "ada", "olga", "bo", "cy"
DIGEST = "sha256:" + "1" * 64


def approval(
    name: str, gpr_name: str, signer: str | None = None, signed: str | None = None, *, gpus: int = 8
) -> str:
    """An approval for a/…; `signed` is what the signature is of, when it is not of this very file."""
    spec: dict[str, object] = {
        "slice": "a",
        "gpr": gpr_name,
        "decision": "approve",
        "specDigest": DIGEST,
        "limit": {"gpus": gpus, "nodes": 1},
        "notAfter": "2026-12-01T00:00:00Z",
    }
    text = _document("Approval", name, spec)
    if signer is None:
        return text
    document = parsed(f"approvals/a/{gpr_name}/{name}.yaml", signed or text)
    assert isinstance(document, Approval)
    return _document(
        "Approval", name, spec | {"signature": key(signer).sign(NAMESPACE, statement("default", document))}
    )


def of_slice(**spec: object) -> str:
    people = {
        "members": [person("bo", account=13)],
        "owners": [person("olga", account=12)],
        "quota": {"gpus": 16},
    }
    return slice_("a", **(people | spec))  # type: ignore[arg-type]


EVERYBODY = {ADMIN, OWNER, MEMBER, OTHER}
TEAM = {ADMIN, OWNER, MEMBER}

CHANGES: dict[str, tuple[Files, set[str]]] = {
    "a member files a request": ({gpr_path("a/new"): gpr("a", "new")}, TEAM),
    "a request is edited": ({gpr_path("a/old"): gpr("a", "old", nodes=2)}, TEAM),
    "a request is released early": ({gpr_path("a/old"): gpr("a", "old", earlyRelease=True)}, TEAM),
    "a request is withdrawn": ({gpr_path("a/old"): None}, TEAM),
    "a request's file becomes unreadable": ({gpr_path("a/old"): "a: [\n"}, TEAM),
    "another slice's request is filed": ({gpr_path("b/new"): gpr("b", "new")}, {ADMIN, OTHER}),
    "another slice's request is cancelled": ({gpr_path("b/old"): None}, {ADMIN, OTHER}),
    "move is set": ({gpr_path("a/new"): gpr("a", "new", move=5)}, {ADMIN}),
    "move is taken away": ({gpr_path("a/moved"): gpr("a", "moved")}, {ADMIN}),
    "move stays, the rest is edited": ({gpr_path("a/moved"): gpr("a", "moved", nodes=2, move=-3)}, TEAM),
    "a member is added": (
        {"slices/a/slice.yaml": of_slice(members=[person("bo", account=13), person("eve")])},
        {ADMIN, OWNER},
    ),
    "the description changes": ({"slices/a/slice.yaml": of_slice(description="Vision")}, {ADMIN, OWNER}),
    "the quota changes": ({"slices/a/slice.yaml": of_slice(quota={"gpus": 1600})}, {ADMIN}),
    "the limits change": ({"slices/a/slice.yaml": of_slice(limits={"maxPriority": 250})}, {ADMIN}),
    "an owner is added": ({"slices/a/slice.yaml": of_slice(owners=[person("bo")])}, {ADMIN}),
    "clusters change": ({"slices/a/slice.yaml": of_slice(clusters=["east", "west"])}, {ADMIN}),
    "namespaces change": ({"slices/a/slice.yaml": of_slice(namespaces=["kube-system"])}, {ADMIN}),
    "members and quota change together": (
        {"slices/a/slice.yaml": of_slice(members=[person("eve")], quota={"gpus": 1600})},
        {ADMIN},
    ),
    "the slice is deleted": ({"slices/a/slice.yaml": None}, {ADMIN}),
    "the slice becomes unreadable": ({"slices/a/slice.yaml": "a: [\n"}, {ADMIN}),
    "a slice is made": ({"slices/c/slice.yaml": slice_("c")}, {ADMIN}),
    "an admin is added": (
        {"project.yaml": project(admins=[person("ada"), person("eve")])},
        {ADMIN},
    ),
    "the project is deleted": ({"project.yaml": None}, {ADMIN}),
    "a cluster changes": ({"clusters/east.yaml": cluster(nodes=1)}, {ADMIN}),
    "a cluster is made": ({"clusters/west.yaml": cluster("west")}, {ADMIN}),
    "a template changes": ({"templates/t.yaml": _document("GPRTemplate", "t", {"nodes": 100})}, {ADMIN}),
    "an unsigned approval": ({"approvals/a/old/ada.yaml": approval("ada", "old")}, {ADMIN}),
    "an approval in another's name": ({"approvals/a/old/olga.yaml": approval("olga", "old")}, set()),
    "an approval signed by its admin": (
        {"approvals/a/new/ada.yaml": approval("ada", "new", "ada")},
        EVERYBODY,
    ),
    "an approval signed by a member": ({"approvals/a/x/ada.yaml": approval("ada", "x", "bo")}, {ADMIN}),
    "an approval with a signature of another": (
        {
            "approvals/a/y/ada.yaml": approval(
                "ada", "y", "ada", approval("ada", "y").replace("gpus: 8", "gpus: 9")
            )
        },
        {ADMIN},
    ),
    "a signed word in place of another": (
        {"approvals/b/one/ada.yaml": approval("ada", "one", "ada")},
        {ADMIN},
    ),
    "a rejection is deleted": ({"approvals/b/old/ada.yaml": None}, {ADMIN}),
    "an approval is given back": ({"approvals/b/good/ada.yaml": None}, {ADMIN, OTHER}),
    "somebody asks for a workspace": (
        {
            "requests/mine.yaml": _document(
                "WorkspaceRequest",
                "mine",
                {"requester": person("bo"), "clusters": ["east"], "namespaces": ["mine"]},
            )
        },
        {ADMIN},
    ),
    "the members of a workspace change": (
        {
            "requests/team.yaml": _document(
                "WorkspaceRequest",
                "team",
                {
                    "requester": person("olga", account=12),
                    "members": [person("eve")],
                    "clusters": ["east"],
                    "namespaces": ["team"],
                },
            )
        },
        {ADMIN, OWNER},
    ),
    "a workspace is to have more": (
        {
            "requests/team.yaml": _document(
                "WorkspaceRequest",
                "team",
                {
                    "requester": person("olga", account=12),
                    "clusters": ["east", "west"],
                    "namespaces": ["team"],
                },
            )
        },
        {ADMIN},
    ),
    "a workspace is given back by who owns it": ({"requests/team.yaml": None}, {ADMIN, OWNER}),
    "the text beside it changes": ({"README.md": "Ours.\n"}, {*EVERYBODY, "eve"}),
    "a workflow is added": ({".github/workflows/x.yml": "on: push\n"}, {*EVERYBODY, "eve"}),
    **OWN,
}

# -- ways to main: each gives the commit that main stands at then ------------------------------------------------

SIGNED: dict[str, Callable[[Land, Files, str], str]] = {
    "a direct push": lambda land, files, who: land.commit(files, who, land.at),
    "a rebase that keeps signatures": lambda land, files, who: land.commit(
        files, who, land.commit({"NEWS": "1\n"}, None, land.at)
    ),
    "a signed merge of unsigned commits": lambda land, files, who: land.merge(
        land.commit(files, None, land.at), who
    ),
    "an unsigned merge of signed commits": lambda land, files, who: land.merge(
        land.commit(files, who, land.at), None
    ),
    "a merge queue that signs with the forge's own key": lambda land, files, who: land.merge(
        land.commit(files, who, land.at), "forge"
    ),
    "an octopus": lambda land, files, who: land.merge(
        [land.commit({"NEWS": "1\n"}, "eve", land.at), land.commit(files, who, land.at)], None
    ),
    "what the merge makes up": lambda land, files, who: land.merge(
        land.commit({"NEWS": "1\n"}, "eve", land.at), who, files
    ),
    "a pull that merged main the other way round": lambda land, files, who: _foxtrot(land, files, who),
}
UNSIGNED: dict[str, Callable[[Land, Files, str], str]] = {
    "a push without a signature": lambda land, files, who: land.commit(files, None, land.at, author=who),
    "a squash by the forge": lambda land, files, who: land.commit(files, "forge", land.at, author=who),
    "a rebase that drops signatures": lambda land, files, who: land.commit(
        {"NEWS": "2\n"}, None, land.commit(files, None, land.at, author=who), author=who
    ),
    "a merge that makes everything up": lambda land, files, who: land.merge(
        land.commit({"NEWS": "1\n"}, who, land.at), None, files
    ),
    "a merge of main that says it is one": lambda land, files, who: land.merge(
        land.commit(files, None, land.at), who, text="Merge branch 'main' of https://forge.example.com/fleet"
    ),
    "a signature by a key that nobody lists": lambda land, files, who: land.commit(
        files, f"{who}'s other key", land.at, author=who
    ),
    "a service that names nobody": lambda land, files, who: land.commit(files, "door", land.at, author=who),
    "a person who names somebody": lambda land, files, who: land.commit(
        files, "eve", land.at, text=f"Change\n\nOn-Behalf-Of: {who} <{who}@example.com>"
    ),
    "a service that names two": lambda land, files, who: land.commit(
        files,
        "door",
        land.at,
        text=f"Change\n\nOn-Behalf-Of: {who} <{who}@example.com>\nOn-Behalf-Of: x <{who}@example.com>",
    ),
}


def _foxtrot(land: Land, files: Files, who: str) -> str:
    """Main before is the second parent: it is not on the line of first parents any more."""
    base = land.at
    return land.of_tree(land.tree(files, base), None, land.commit(files, who, _root(land)), base)


def _root(land: Land) -> str:
    from tests.support import repos

    return repos.git(land.repo, "rev-list", "--max-parents=0", land.at)


@pytest.fixture(scope="module")
def land(tmp_path_factory: pytest.TempPathFactory) -> Land:
    land = Land.begun(tmp_path_factory.mktemp("matrix"), base_files() | BASE)
    land.pushed(land.commit({"NEWS": "0\n"}, None, land.at))
    return land


def portions() -> list[dict[str, Files]]:
    """All changes, in as few landings as their paths allow."""
    found: list[dict[str, Files]] = []
    for sentence, (files, _) in CHANGES.items():
        free = (p for p in found if not any(path in other for path in files for other in p.values()))
        place = next(free, None)
        if place is None:
            found.append(place := {})
        place[sentence] = files
    return found


def allowed(land: Land, bring: Callable[[Land, Files, str], str], who: str) -> set[str]:
    """Sentences of the changes that count when this person brings them that way."""
    counting = set[str]()
    for portion in portions():
        gate, base = land.gate(), land.at
        land.admit(gate)
        land.pushed(
            bring(land, {path: text for files in portion.values() for path, text in files.items()}, who)
        )
        admitted = land.admit(gate)
        assert admitted.commit == land.at
        assert admitted.alarm == ""
        held = rules(admitted)
        counting |= {sentence for sentence, files in portion.items() if not held.keys() & files.keys()}
        land.at = base
    return counting


FREE = {sentence for sentence, (_, who) in CHANGES.items() if "eve" in who}
INSIDE = "an approval signed by its admin"
ABOUT_REQUESTS = {
    "a member files a request",
    "a request is edited",
    "a request is released early",
    "a request is withdrawn",
    "a request's file becomes unreadable",
    "another slice's request is filed",
    "another slice's request is cancelled",
    "move stays, the rest is edited",
    "an approval is given back",
}


@pytest.mark.parametrize("who", [ADMIN, OWNER, MEMBER, OTHER, "eve"])
@pytest.mark.parametrize("way", SIGNED)
def test_who_signs_may_what_the_table_says(land: Land, who: str, way: str) -> None:
    want = {sentence for sentence, (_, may) in CHANGES.items() if who in may}
    assert allowed(land, SIGNED[way], who) == want | {INSIDE}


@pytest.mark.parametrize("who", [ADMIN, MEMBER])
@pytest.mark.parametrize("way", UNSIGNED)
def test_without_a_signature_that_counts_nothing_does(land: Land, who: str, way: str) -> None:
    assert allowed(land, UNSIGNED[way], who) == FREE | {INSIDE}


@pytest.mark.parametrize("who", [ADMIN, OWNER, MEMBER, OTHER, "eve"])
def test_a_service_vouches_for_whom_it_names(land: Land, who: str) -> None:
    """Beyond doubt: what a slice alone calls somebody makes keys for that slice alone."""
    want = {
        sentence for sentence, (_, may) in CHANGES.items() if who in may | BEYOND_DOUBT.get(sentence, set())
    }
    text = f"Change\n\nOn-Behalf-Of: {who} <{who}@example.com>"
    assert allowed(
        land, lambda land, files, _: land.commit(files, "api", land.at, text=text), who
    ) == want | {INSIDE}


@pytest.mark.parametrize("who", [ADMIN, OWNER, MEMBER, OTHER, "eve"])
def test_a_service_that_is_not_for_everything_speaks_about_requests_alone(land: Land, who: str) -> None:
    want = {sentence for sentence in ABOUT_REQUESTS if who in CHANGES[sentence][1]}
    text = f"Change\n\nOn-Behalf-Of: {who} <{who}@example.com>"
    assert (
        allowed(land, lambda land, files, _: land.commit(files, "door", land.at, text=text), who)
        == want | {INSIDE} | FREE
    )


def test_what_such_a_service_may_not_say_is_told_with_what_to_do(land: Land) -> None:
    gate, base = land.gate(), land.at
    land.admit(gate)
    text = "Change\n\nOn-Behalf-Of: ada <ada@example.com>"
    land.pushed(land.commit({"clusters/east.yaml": cluster(nodes=1)}, "door", land.at, text=text))
    (held,) = land.admit(gate).held
    land.at = base
    assert (held.rule, "`service:<name>/all`" in held.message) == ("NotAnAdmin", True)


def test_the_changes_are_changes() -> None:
    base = base_files() | BASE
    for files, _ in CHANGES.values():
        assert all(base.get(path) != text for path, text in files.items())
