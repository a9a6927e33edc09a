"""For whom a door vouches: the author that admission names, and nobody else; by signature, in its trailer (E4, A8)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from reconciler.gpr_objects.door import DoorSettings, RequestDoor
from reconciler.gpr_objects.object_files import DOOR, FILED_BY, Author, Edit
from reconciler.model.evidence import GIT
from reconciler.settings import Settings
from reconciler.store.document_cache import DocumentCache
from reconciler.store.memory_store import MemoryStore
from reconciler.store.store_port import Draft, Person, chain
from reconciler.trust.machines import signer, signing
from reconciler.trust.vouchers import on_behalf_of
from schemas.reading.reader import READER_VERSION
from schemas.reading.strict_yaml import load
from schemas.status.gpr_status import Phase
from tests.support.asked import BO, KEY, PATH, asked, edit, file_of, status, view
from tests.support.machinekeys import key
from tests.support.memory_remote import MemoryRemote
from tests.support.world import START, at

CI = "system:serviceaccount:vision-train:ci"
CI_ADDRESS = "ci@vision-train.serviceaccount.east.invalid"
NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    ("thing", "guarded", "behalf"),
    [
        pytest.param(asked(), START, BO, id="whom admission names"),
        pytest.param(asked(author=CI), START, CI_ADDRESS, id="a pipeline's own account"),
        pytest.param(asked(author="admin"), START, "", id="a name that is no address vouches for nobody"),
        pytest.param(asked(), None, "", id="an annotation that anybody could have written"),
        pytest.param(asked(), at(5), "", id="an object that is older than the guard"),
        pytest.param(asked(author=None, manager=BO), START, "", id="what the client says of itself"),
    ],
)
@pytest.mark.parametrize("via", ["commit", "branch"])
def test_a_door_vouches_for_whom_admission_names(thing, guarded, behalf, via):
    found = edit(view(thing, guarded_since=guarded, via=via))
    assert found.behalf == behalf
    assert load(found.changes[PATH])["metadata"]["labels"].get(FILED_BY, "") == behalf


def test_a_release_is_on_behalf_of_whoever_asked_for_it():
    """Admission names who wrote the annotation: GPUs are given back without a review where main is protected."""
    thing = asked(is_released=True, author="cy@example.com")
    found = edit(view(thing, files={PATH: file_of(asked())}, statuses={KEY: status(Phase.PROVISIONED)}))
    assert found.behalf == "cy@example.com"
    assert load(found.changes[PATH])["spec"]["earlyRelease"] is True


@pytest.mark.parametrize("phase", [Phase.QUEUED, Phase.PROVISIONED, Phase.COMPLETED])
def test_a_deletion_is_on_behalf_of_whom_the_file_is_from(phase):
    found = edit(view(files={PATH: file_of(asked())}, statuses={KEY: status(phase)}, gone=frozenset({KEY})))
    assert (found.author, found.behalf) == (DOOR, BO)


@pytest.mark.parametrize(
    "label", ["", "ada@example.com>\nOn-Behalf-Of: x@y.z", "a <b@c.d>", "not an address"]
)
def test_a_label_that_is_no_address_vouches_for_nobody(label):
    text = file_of(asked()).replace(f"{FILED_BY}: {BO}", f"{FILED_BY}: {label!r}")
    assert label in str(load(text.encode())["metadata"]["labels"]) or "\n" in label
    found = edit(view(files={PATH: text}, statuses={KEY: status()}, gone=frozenset({KEY})))
    assert found.behalf == ""


def test_a_file_of_an_older_door_is_left_as_it_is():
    thing = asked()
    text = file_of(thing).replace(f"    {FILED_BY}: {BO}\n", "")
    found = view(replace(thing, is_released=True), files={PATH: text}, statuses={KEY: status()})
    assert FILED_BY not in load(edit(found).changes[PATH])["metadata"]["labels"]


def committed(found: Edit):
    """The commit that a door with a key makes of an edit."""
    store = MemoryStore(MemoryRemote(), signing(key("service:door")))
    root = store.write(Draft({"project.yaml": b"x"}, "first", Person("Ada", "ada@x.com"), NOW))
    settings = Settings(repo="memory", state=None)  # type: ignore[arg-type]
    door = RequestDoor(None, store, DocumentCache(None, READER_VERSION), settings, DoorSettings("east"))  # type: ignore[arg-type]
    (made,) = store.write_all(chain(root, [door._draft(found, NOW)]))
    return store.commit(made)


def test_its_commits_are_signed_and_name_the_person():
    found = committed(edit(view(asked(author=CI))))
    assert signer(GIT, found.payload, found.signature) == key("service:door").public
    assert on_behalf_of(found) == CI_ADDRESS
    assert found.trailers["On-Behalf-Of"] == f"{CI} <{CI_ADDRESS}>"
    assert found.trailers["Origin"] == "east/vision/vision-train/train/uid-vision-train-train"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("eve\n\nOn-Behalf-Of: Ada <ada@example.com>", id="a trailer of its own"),
        pytest.param("eve\nOn-Behalf-Of: Ada <ada@example.com>", id="a line of its own"),
        pytest.param("eve <ada@example.com>", id="an address of somebody else"),
        pytest.param("eve\r\nOn-Behalf-Of: ada@example.com", id="a carriage return"),
    ],
)
def test_no_name_brings_a_trailer_in(name):
    """Names come from whatever a cluster takes for one; for those nobody is vouched for."""
    found = edit(view(asked(author=name)))
    assert found.behalf == ""
    assert on_behalf_of(committed(found)) is None


def test_without_a_verified_author_nobody_is_named():
    unverified = Edit(KEY, "branch", {PATH: b"x"}, "Create vision/train", Author(BO, is_verified=False), "o")
    found = committed(unverified)
    assert on_behalf_of(found) is None
    assert found.author == Person(f"{BO} (unverified)", "unverified@east.invalid")
