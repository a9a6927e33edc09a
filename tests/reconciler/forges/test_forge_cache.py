"""What cannot change any more is asked once; what can is asked each time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.forges.forge_port import Forge
from reconciler.forges.open_forge import open_forge
from schemas.errors import Fault
from tests.support import forge as fake
from tests.support import repos

PATH = "slices/vision/gprs/llama.yaml"


@pytest.fixture
def there(tmp_path: Path) -> Iterator[tuple[fake.Forge, Forge]]:
    forge = fake.Forge(repos.bare(tmp_path / "fleet.git", {PATH: "old\n"}))
    with fake.served(forge, tmp_path) as address:
        yield forge, open_forge(address)


def test_a_merged_pull_request_is_asked_once(there: tuple[fake.Forge, Forge]) -> None:
    forge, ours = there
    forge.push("ask", {PATH: "new\n"}, "bo")
    number = forge.open("ask", "bo")
    commit = forge.merge(number, "ada")
    first = (
        ours.pulls_of(commit),
        ours.changed_paths(number),
        ours.committers(number),
        ours.blob_at(commit, PATH),
    )
    before = len(forge.calls)
    again = (
        ours.pulls_of(commit),
        ours.changed_paths(number),
        ours.committers(number),
        ours.blob_at(commit, PATH),
    )
    assert (again, len(forge.calls)) == (first, before)


def test_reviews_are_asked_each_time(there: tuple[fake.Forge, Forge]) -> None:
    forge, ours = there
    forge.push("ask", {PATH: "new\n"}, "bo")
    number = forge.open("ask", "bo")
    forge.merge(number, "ada")
    assert list(ours.reviews(number)) == []
    forge.approve(number, "ada")
    assert len(ours.reviews(number)) == 1


def test_an_open_pull_request_is_asked_each_time(there: tuple[fake.Forge, Forge]) -> None:
    forge, ours = there
    forge.push("ask", {PATH: "new\n"}, "bo")
    number = forge.open("ask", "bo")
    first, paths = ours.pull(number), set(ours.changed_paths(number))
    forge.push("ask", {"README.md": "x\n"}, "bo")
    assert ours.pull(number).head != first.head
    assert set(ours.changed_paths(number)) == paths | {"README.md"}


def test_what_is_not_known_yet_is_asked_again(there: tuple[fake.Forge, Forge]) -> None:
    forge, ours = there
    commit = repos.commit(forge.repo, {PATH: "new\n"})
    with pytest.raises(Fault):
        ours.pusher_of("main", commit)
    forge.pushed("main", repos.git(forge.repo, "rev-parse", f"{commit}^"), commit, "bo")
    pusher = ours.pusher_of("main", commit)
    assert pusher is not None
    assert pusher.login == "bo"
