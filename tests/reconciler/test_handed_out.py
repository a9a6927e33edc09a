"""Keys, profiles and bindings count as main has them now, and never as they were (B7, D19, H12)."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.documents.in_force import Desired
from reconciler.model.facts import Facts
from reconciler.store.document_cache import DocumentCache
from schemas.documents.apikey import digest_of
from schemas.reading.reader import READER_VERSION
from schemas.status.gpr_status import Phase
from tests.support.world import START, World, _document, at, gpr, gpr_path

KEY = {"sha256": digest_of("egs_1"), "email": "bo@example.com", "role": "Editor", "slices": ["a"]}
COPY = {**KEY, "email": "cy@example.com", "slices": []}
TEMPLATES = {
    f"templates/{name}.yaml": _document("GPRTemplate", name, {"nodes": 1, "duration": "1h"})
    for name in ("small", "large")
}
BINDING = _document("GPRTemplateBinding", "a", {"clusters": [{"cluster": "east", "templates": ["small"]}]})


def key(name: str, spec: Mapping[str, object]) -> dict[str, str | None]:
    """The manifest of a key."""
    return {f"keys/{name}.yaml": _document("ApiKey", name, spec)}


class Keys:
    """Which keys count, read from commit to commit as a controller reads."""

    def __init__(self, files: Mapping[str, str | None]) -> None:
        self.world = World(files)
        self._desired = Desired(self.world.people, DocumentCache(None, READER_VERSION))

    def after(self, files: Mapping[str, str | None]) -> set[str]:
        """Once that is on main."""
        self._desired.update(self.world.commit(files))
        return set(self._desired.wanted(Facts(START)).keys)


def test_of_a_key_nothing_stays_in_force() -> None:
    keys = Keys(key("ci", KEY))
    assert keys.after(key("robot", {**KEY, "sha256": digest_of("egs_2")})) == {"ci", "robot"}
    assert keys.after({"keys/ci.yaml": "a: [\n"}) == {"robot"}
    assert keys.after({"keys/robot.yaml": None}) == set()


def test_a_copied_digest_takes_nobodys_requests() -> None:
    keys = Keys({})
    assert keys.after(key("ci", KEY)) == {"ci"}
    assert keys.after(key("aaa", COPY)) == set()
    assert keys.after({"keys/aaa.yaml": None}) == {"ci"}


def test_a_request_beyond_the_binding_is_not_filed_and_one_that_was_keeps_its_terms() -> None:
    old, new = gpr_path("a/old"), gpr_path("a/new")
    world = World({**TEMPLATES, old: gpr("a", "old", template="large")})
    world.run(at(3))
    assert world.status("a/old").phase is Phase.PROVISIONED
    world.commit({"bindings/a.yaml": BINDING, new: gpr("a", "new", template="large")})
    world.run(at(4))
    requests = world.facts().requests
    assert "a/new" not in requests
    assert requests["a/old"].phase is Phase.PROVISIONED
    world.commit({new: gpr("a", "new", template="small")})
    world.run(at(5))
    assert world.status("a/new").phase is Phase.QUEUED
