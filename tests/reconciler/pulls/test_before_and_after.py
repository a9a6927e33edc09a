"""Reading only what a change touches says exactly what reading everything says, whatever the change is."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.pulls import before_and_after
from reconciler.pulls.check import PullCheck
from reconciler.pulls.queue_at_check import CommittedStatus, committed_status
from reconciler.store.store_port import Store
from reconciler.store.store_port import Store as AnyStore
from schemas.reading.yaml_text import dump
from schemas.status.gpr_status import Phase
from tests.reconciler.pulls.pull import Pulls, request
from tests.support.profile import law
from tests.support.world import approval, at, cluster, gpr_path, project, slice_

TEMPLATE = dump(
    {
        "apiVersion": "egs.dev/v1alpha1",
        "kind": "GPRTemplate",
        "metadata": {"name": "small"},
        "spec": {"nodes": 1, "duration": "2h"},
    }
)
WINDOWS = [{"begin": "2026-11-21T09:00:00Z", "end": "2026-11-21T12:00:00Z", "nodes": ["h100-1", "h100-2"]}]
PILOT = {
    "templates/small.yaml": TEMPLATE,
    **request("a/short", 1, "10m"),
    **request("b/long", 2, "9h"),
}
QUEUE = {
    **request("a/one", 1, "2h"),
    **request("a/two", 2, "1h", priority=180),
    **request("a/big", 3, "1h"),
    **request("b/one", 2, "3h"),
    **request("b/templated", 1, "2h", template="small"),
    **request("b/two", 4, "1h", priority=20),
    gpr_path("b/broken"): "kind: GPR\n",
}
CHANGES: tuple[Mapping[str, str | None], ...] = (
    request("a/new", 2, "2h", priority=190),
    request("b/new", 4, "30m"),
    request("b/huge", 40, "30m"),
    request("a/one", 2, "2h"),
    request("a/short", 2, "2h"),
    request("b/long", 2, "9h", earlyRelease=True),
    request("b/long", 2, "9h", extend="0d0h30m"),
    {gpr_path("b/one"): None},
    {gpr_path("b/long"): None},
    {gpr_path("a/short"): None},
    {gpr_path("b/broken"): None},
    {"templates/small.yaml": TEMPLATE.replace("2h", "4h")},
    {"templates/small.yaml": None},
    {"slices/a/slice.yaml": slice_("a", quota={"gpus": 8})},
    {"slices/b/slice.yaml": slice_("b", limits={"maxNodes": 2})},
    {"clusters/east.yaml": cluster(nodes=2)},
    {"clusters/east.yaml": cluster(nodes=8)},
    {"clusters/east.yaml": cluster(nodes=4, pricePerGpuHour=2.5, maintenance=WINDOWS)},
    {"project.yaml": project(limits={"nodesPerRequest": 1})},
    {"project.yaml": project(limits={"requestsPerSlice": 3})},
    {"approvals/a/big/ada.yaml": approval("a", "big", "sha256:" + "0" * 64)},
    {"slices/a/slice.yaml": "nothing: [", "README.md": "x"},
)


@pytest.fixture(scope="module")
def pulls() -> Pulls:
    found = Pulls.on(PILOT)
    found.world.run(at(30))
    found.then(QUEUE)
    assert found.world.status("a/short").phase is Phase.COMPLETED
    return found


@contextmanager
def everything_read() -> Iterator[None]:
    """Nobody can tell what moved, and every record of the status is read."""

    def all_of_it(store: Store, tip: str, needed: Collection[str]) -> CommittedStatus:
        keys = {"/".join(p.split("/")[1::2]).removesuffix(".yaml") for p in _paths(store, tip)}
        return committed_status(store, tip, {*needed, *keys})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(before_and_after, "paths_since", lambda *_: None)
        patch.setattr(before_and_after, "committed_status", all_of_it)
        yield


def _paths(store: AnyStore, tip: str) -> list[str]:
    return [entry.path for entry in store.diff(None, tip) if entry.path.startswith("slices/")]


def said(check: PullCheck) -> PullCheck:
    """Without what differs between any two commits."""
    return replace(check, stamps=replace(check.stamps, head=""))


@law(40)
@given(chosen=st.sets(st.integers(0, len(CHANGES) - 1), min_size=1, max_size=4))
def test_nothing_that_is_left_unread_matters(pulls: Pulls, chosen: set[int]) -> None:
    files: dict[str, str | None] = {}
    for number in sorted(chosen):
        files |= CHANGES[number]
    little = pulls.check(files)
    with everything_read():
        assert said(pulls.check(files)) == said(little)


@pytest.mark.parametrize("number", range(len(CHANGES)))
def test_each_change_alone(pulls: Pulls, number: int) -> None:
    little = pulls.check(CHANGES[number])
    with everything_read():
        assert said(pulls.check(CHANGES[number])) == said(little)


def test_what_the_file_of_a_request_breaks_that_is_over_is_nobodys_trouble() -> None:
    pulls = Pulls.on(request("a/done", 2, "10m"))
    pulls.world.run(at(30))
    assert pulls.world.status("a/done").phase is Phase.COMPLETED
    check = pulls.check({"clusters/east.yaml": cluster(nodes=1)})
    assert [p for p in check.problems if p.severity == "error"] == []


def test_what_main_changed_since_the_status_is_read() -> None:
    pulls = Pulls.on(PILOT)
    pulls.world.commit(QUEUE)
    little = pulls.check(request("a/new", 2, "2h", priority=190))
    with everything_read():
        assert said(pulls.check(request("a/new", 2, "2h", priority=190))) == said(little)


def test_few_files_are_read(pulls: Pulls) -> None:
    read: list[int] = []
    original = before_and_after.Documents

    class Counted(original):  # type: ignore[misc, valid-type]
        def merge(self) -> None:
            super().merge()
            read.append(len(self.desired.repository.documents))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(before_and_after, "Documents", Counted)
        pulls.check(request("a/new"))
    assert read == [6], "project, cluster, two slices, the template and the new request"
