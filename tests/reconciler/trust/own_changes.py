"""Changes of keys, profiles, routes and bindings, and who may make them: a part of the matrix of test_policy_matrix.py.

bo is a member and olga the owner of slice a; cy is a member of slice b; ada is the admin.
"""

from __future__ import annotations

from schemas.documents.apikey import digest_of
from tests.support.landing import Files, person
from tests.support.world import _document, slice_

ADMIN, OWNER, MEMBER = "ada", "olga", "bo"


def key_of(
    name: str, who: str, role: str = "Editor", slices: tuple[str, ...] = ("a",), **more: object
) -> str:
    """The manifest of somebody's key."""
    spec = {
        "sha256": digest_of(name),
        "email": f"{who}@example.com",
        "role": role,
        "slices": list(slices),
        **more,
    }
    return _document("ApiKey", name, spec)


def profile_of(name: str, who: str, *scopes: list[str]) -> str:
    """A profile with a route for each of these lists of slices."""
    routes = [{"name": f"r{i}", "secret": "mail", "slices": scope} for i, scope in enumerate(scopes)]
    return _document("Profile", name, {"email": f"{who}@example.com", "notifications": routes})


BASE = {
    "keys/bold.yaml": key_of("bold", "bo"),
    "keys/cold.yaml": key_of("cold", "bo"),
    "keys/dim.yaml": key_of("dim", "bo"),
    "keys/everywhere.yaml": key_of("everywhere", "bo", slices=()),
    "people/bert.yaml": profile_of("bert", "bo", ["a"]),
}
"""What lies there before; to be merged into `base_files`."""

OWN: dict[str, tuple[Files, set[str]]] = {
    "a key of one's own for one's slice": ({"keys/a.yaml": key_of("a", "bo")}, {ADMIN, MEMBER}),
    "an owner's key of an owner": ({"keys/b.yaml": key_of("b", "olga", "Owner")}, {OWNER}),
    "a key for another's address": ({"keys/c.yaml": key_of("c", "ada", "Viewer")}, {ADMIN}),
    "a key for a robot": ({"keys/d.yaml": key_of("d", "robot")}, {ADMIN}),
    "a member's key with the role of an owner": ({"keys/e.yaml": key_of("e", "bo", "Owner")}, set()),
    "a key for the whole project": ({"keys/f.yaml": key_of("f", "bo", slices=())}, {ADMIN}),
    "a key for another slice too": ({"keys/a1.yaml": key_of("a1", "bo", slices=("a", "b"))}, {ADMIN}),
    "a key is revoked": ({"keys/bold.yaml": key_of("bold", "bo", revoked=True)}, {ADMIN, MEMBER}),
    "a key is handed to somebody else": ({"keys/bold.yaml": key_of("bold", "olga")}, {ADMIN}),
    "a key may more than before": ({"keys/bold.yaml": key_of("bold", "bo", slices=())}, {ADMIN}),
    "a key is deleted": ({"keys/cold.yaml": None}, {ADMIN, MEMBER}),
    "a key becomes unreadable": ({"keys/dim.yaml": "a: [\n"}, {ADMIN, MEMBER}),
    "a key for everything is revoked": (
        {"keys/everywhere.yaml": key_of("everywhere", "bo", slices=(), revoked=True)},
        {ADMIN},
    ),
    "an unreadable key is made": ({"keys/b2.yaml": "a: [\n"}, {ADMIN}),
    "a profile of one's own for one's slice": (
        {"people/bo.yaml": profile_of("bo", "bo", ["a"], ["a"])},
        {ADMIN, MEMBER},
    ),
    "a profile that hears of everything": ({"people/b3.yaml": profile_of("b3", "bo", ["a"], [])}, {ADMIN}),
    "a profile of another": ({"people/c3.yaml": profile_of("c3", "ada", ["a"])}, {ADMIN}),
    "a profile is taken over": ({"people/bert.yaml": profile_of("bert", "olga", ["a"])}, {ADMIN}),
    "a slice's routes change": (
        {
            "slices/a/slice.yaml": slice_(
                "a",
                members=[person("bo", account=13)],
                owners=[person("olga", account=12)],
                quota={"gpus": 16},
                notifications=[{"name": "chat", "secret": "chat"}],
            )
        },
        {ADMIN, OWNER},
    ),
    "a binding is made": (
        {
            "bindings/a.yaml": _document(
                "GPRTemplateBinding", "a", {"clusters": [{"cluster": "east", "templates": ["t"]}]}
            )
        },
        {ADMIN},
    ),
}
"""By sentence: the files, and who may, where the manifests alone say whose a signing key is."""

BEYOND_DOUBT: dict[str, set[str]] = {
    "a member's key with the role of an owner": {MEMBER},
    "a key for the whole project": {MEMBER},
    "a key for another slice too": {MEMBER},
    "a key may more than before": {MEMBER},
    "a key for everything is revoked": {MEMBER},
    "a profile that hears of everything": {MEMBER},
}
"""Who may too, where somebody whom the operator believes says whose address it is: for every slice, then."""
