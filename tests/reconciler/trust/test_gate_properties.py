"""Laws of judging main, on histories that nobody would write."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from schemas.documents.base import Document
from tests.reconciler.trust.test_policy_matrix import of_slice
from tests.support.landing import Land, person, rules
from tests.support.profile import law
from tests.support.world import gpr, gpr_path, project

PEOPLE = st.sampled_from(["ada", "olga", "bo", "cy", "eve", None])
WHAT = st.sampled_from(
    [
        {gpr_path("a/new"): gpr("a", "new")},
        {gpr_path("a/new"): None},
        {gpr_path("b/old"): gpr("b", "old", nodes=2)},
        {gpr_path("b/old"): gpr("b", "old")},
        {"slices/a/slice.yaml": of_slice(members=[person("eve"), person("cy")])},
        {"slices/a/slice.yaml": of_slice()},
        {"slices/a/slice.yaml": of_slice(quota={"gpus": 1600})},
        {"slices/a/slice.yaml": "a: [\n"},
        {"project.yaml": project(admins=[person("ada"), person("olga")])},
        {"NEWS": "1\n"},
    ]
)
STEPS = st.lists(
    st.tuples(st.sampled_from(["push", "merge", "signed merge", "merge that leaves out"]), PEOPLE, WHAT),
    min_size=1,
    max_size=7,
)


@law(12)
@given(STEPS, st.data())
def test_when_main_is_looked_at_changes_nothing(steps: list, data: st.DataObject) -> None:  # type: ignore[type-arg]
    """In one go, commit by commit, or by controllers that begin anew in between: the same is held.

    And what a merge leaves out does not count.
    """
    with tempfile.TemporaryDirectory() as folder:
        land = Land.begun(Path(folder))
        base = record = None
        base, at = land.at, [land.at]
        kept, people = land.gate(), dict[str, Document]()
        everybody = land.admit(kept, None, base)
        for way, who, files in steps:
            files = {p: t for p, t in files.items() if t is not None or _has(land, p)}
            if way == "push":
                land.pushed(land.commit(files, who, land.at))
            else:
                side = land.commit(files, who, data.draw(st.sampled_from(at[-2:])))
                land.pushed(
                    _left_out(land, side)
                    if way == "merge that leaves out"
                    else land.merge(side, "ada" if way == "signed merge" else None)
                    if _merges(land, side)
                    else land.at
                )
            at.append(land.at)
            before, everybody = everybody, land.admit(kept, None, base)
            assert way != "merge that leaves out" or rules(everybody) == rules(before)
            again = land.admit(land.gate(in_force=people.get), record, base)
            assert rules(again) == rules(everybody)
            if data.draw(st.booleans()):
                # With what is in force of a file that does not read, as the status branch keeps it.
                record, people = again.record, dict(kept._tree._people)
        assert rules(land.admit(land.gate(), None, base)) == rules(everybody)


def _has(land: Land, path: str) -> bool:
    from tests.support import repos

    return repos.git(land.repo, "ls-tree", land.at, path) != ""


def _left_out(land: Land, side: str) -> str:
    """A merge, by nobody, that keeps main as it is."""
    from tests.support import repos

    return land.of_tree(repos.git(land.repo, "rev-parse", f"{land.at}^{{tree}}"), None, land.at, side)


def _merges(land: Land, side: str) -> bool:
    import subprocess

    from tests.support import repos

    command = ["git", "merge-tree", "--write-tree", land.at, side]
    return subprocess.run(command, cwd=land.repo, env=repos.ENVIRONMENT, capture_output=True).returncode == 0
