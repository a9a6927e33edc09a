"""A commit is taken back field by field; what changed again since is refused by name."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from reconciler.changes.undo import Undo, commit_on, undo
from reconciler.sources.command_errors import NotAllowed, NotFound
from reconciler.store.memory_store import MemoryRemote, MemoryStore
from reconciler.store.store_port import Draft, Person
from schemas.reading.strict_yaml import load

NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
BO = Person("Bo", "bo@example.com")
PATH = "slices/a/gprs/x.yaml"
Files = Mapping[str, str | None]


def gpr(**spec: object) -> str:
    lines = "".join(f"  {name}: {value}\n" for name, value in {"nodes": 1, "priority": 100, **spec}.items())
    return f"# mine\napiVersion: egs.dev/v1alpha1\nkind: GPR\nmetadata: {{name: x}}\nspec:\n{lines}"


class Main:
    """Main as a chain of commits."""

    def __init__(self, *steps: Files) -> None:
        self.store, self.commits = MemoryStore(MemoryRemote()), list[str]()
        for number, files in enumerate(steps):
            changes = {path: None if text is None else text.encode() for path, text in files.items()}
            tip = self.commits[-1] if self.commits else None
            self.commits.append(self.store.write(Draft(changes, f"Step {number}", BO, NOW, tip, tip)))

    def undo(self, number: int) -> Undo:
        tip = self.commits[-1]
        return undo(
            self.store, self.store.commit(self.commits[number]), lambda path: self.store.read_path(tip, path)
        )


def spec_of(made: Undo, path: str = PATH) -> dict[str, object]:
    content = load(made.changes[path] or b"")
    assert isinstance(content, dict)
    return content["spec"]


def test_the_last_change_of_a_file_gives_the_very_bytes_back() -> None:
    main = Main({PATH: gpr()}, {PATH: gpr(priority=200, nodes=4)})
    made = main.undo(1)
    assert made.changes == {PATH: gpr().encode()}
    assert made.steps[0].fields == ("spec.nodes", "spec.priority")


def test_later_changes_of_other_fields_and_comments_stay() -> None:
    later = gpr(priority=200, nodes=8) + "  # why\n"
    main = Main({PATH: gpr()}, {PATH: gpr(priority=200)}, {PATH: later})
    made = main.undo(1)
    assert spec_of(made) == {"nodes": 8, "priority": 100}
    assert b"# why" in (made.changes[PATH] or b"")
    assert made.steps[0].fields == ("spec.priority",)


def test_a_field_that_changed_again_is_refused_by_name() -> None:
    main = Main({PATH: gpr()}, {PATH: gpr(priority=200, nodes=2)}, {PATH: gpr(priority=250, nodes=2)})
    with pytest.raises(NotAllowed, match=r"slices/a/gprs/x.yaml: spec.priority changed again since"):
        main.undo(1)


def test_a_field_that_the_commit_added_goes_again_with_its_mapping() -> None:
    main = Main(
        {PATH: gpr()}, {PATH: gpr(network="{rdma: true}")}, {PATH: gpr(network="{rdma: true}", nodes=3)}
    )
    assert spec_of(main.undo(1)) == {"nodes": 3, "priority": 100}


def with_clusters(*steps: str) -> Main:
    return Main(*({PATH: gpr(clusters=f"[{names}]")} for names in steps))


def test_of_a_list_only_the_entries_of_the_commit_are_taken_back() -> None:
    added = with_clusters("east", "east, west", "east, west, north")
    assert spec_of(added.undo(1))["clusters"] == ["east", "north"]
    removed = with_clusters("east, west", "east", "east, north")
    assert spec_of(removed.undo(1))["clusters"] == ["east", "north", "west"]
    with pytest.raises(NotAllowed, match=r"spec\.clusters changed again"):
        with_clusters("east", "east, west", "north").undo(1)


def test_a_new_file_goes_and_a_deleted_one_comes_back() -> None:
    main = Main({"project.yaml": "a: 1\n"}, {PATH: gpr()})
    assert main.undo(1).changes == {PATH: None}
    main = Main({PATH: gpr(), "project.yaml": "a: 1\n"}, {PATH: None})
    assert main.undo(1).changes == {PATH: gpr().encode()}
    main = Main({"project.yaml": "a: 1\n"}, {PATH: gpr()}, {PATH: gpr(nodes=3)})
    with pytest.raises(NotAllowed, match="was changed again since"):
        main.undo(1)
    main = Main({PATH: gpr()}, {PATH: None}, {PATH: gpr(nodes=3)})
    with pytest.raises(NotAllowed, match="was changed again since"):
        main.undo(1)


def test_what_is_undone_already_is_said() -> None:
    main = Main({PATH: gpr()}, {PATH: gpr(nodes=4)}, {PATH: gpr()})
    with pytest.raises(NotAllowed, match="is undone already"):
        main.undo(1)


def test_an_undo_can_be_undone() -> None:
    main = Main({PATH: gpr()}, {PATH: gpr(nodes=4)}, {PATH: gpr()})
    assert main.undo(2).changes == {PATH: gpr(nodes=4).encode()}


def test_files_that_are_no_documents_stay_and_are_named() -> None:
    main = Main({PATH: gpr(), "README.md": "a"}, {PATH: gpr(nodes=4), "README.md": "b"})
    made = main.undo(1)
    assert (list(made.changes), made.left) == ([PATH], ("README.md",))
    main = Main({"README.md": "a"}, {"README.md": "b"})
    with pytest.raises(NotAllowed, match="has no documents"):
        main.undo(1)


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        pytest.param(({PATH: gpr()},), "first commit", id="the first commit has nothing before it"),
        pytest.param(({PATH: gpr()}, {"keys/ci.yaml": "a: 1\n"}), "keys are not brought back", id="keys"),
        pytest.param(
            ({PATH: gpr()}, {PATH: gpr(nodes=2)}, {PATH: gpr(nodes=2) + " bad: [\n"}),
            "edit it by hand",
            id="broken",
        ),
    ],
)
def test_what_cannot_be_undone_says_why(steps: tuple[Files, ...], why: str) -> None:
    main = Main(*steps)
    with pytest.raises(NotAllowed, match=why):
        main.undo(min(1, len(steps) - 1))


def test_a_commit_is_found_by_its_name_or_the_beginning_of_it() -> None:
    main = Main({PATH: gpr()}, {PATH: gpr(nodes=2)})
    first, last = main.commits
    for name in (first, first[:7]):
        assert commit_on(main.store, last, name).oid == first
    for name in ("f" * 40, first[:6], "main", "HEAD~1", first.upper() if first.upper() != first else "x"):
        with pytest.raises(NotFound):
            commit_on(main.store, last, name)


def test_the_digest_is_of_the_change() -> None:
    one = Main({PATH: gpr()}, {PATH: gpr(nodes=4)})
    two = Main({PATH: gpr()}, {PATH: gpr(nodes=4)}, {PATH: gpr(nodes=4, priority=1)})
    assert one.undo(1).digest == one.undo(1).digest != two.undo(1).digest
