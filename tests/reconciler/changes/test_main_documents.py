"""Changes on top of main's documents: what each would break is known without a commit, and is taken back whole."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.changes.main_documents import MainDocuments
from reconciler.documents.restored_files import readable, says
from schemas.reading.reader import read_document
from schemas.rules.repository import Repository
from schemas.status.gpr_status import Phase
from tests.support.asked import status
from tests.support.profile import law
from tests.support.world import cluster, gpr, gpr_path, project, slice_

ONE, TWO = gpr_path("a/one"), gpr_path("a/two")
FLEET = {
    "project.yaml": project(),
    "clusters/east.yaml": cluster(),
    "slices/a/slice.yaml": slice_("a"),
    "slices/b/slice.yaml": slice_("b"),
    ONE: gpr("a", "one"),
}
GOOD, BAD = gpr("a", "one", duration="2h"), gpr("a", "one", nodes=0)


def documents(files: Mapping[str, str] = FLEET) -> MainDocuments:
    """On main with these files."""
    made = MainDocuments(Repository())
    made.update({path: read_document(path, text.encode()) for path, text in files.items()})
    return made


def known(main: MainDocuments) -> object:
    """All that is known of the documents."""
    return dict(main.repository.documents), dict(main.repository.refused), main.repository.findings()


def data(changes: Mapping[str, str | None]) -> dict[str, bytes | None]:
    return {path: None if text is None else text.encode() for path, text in changes.items()}


CHANGES = st.dictionaries(
    st.sampled_from((ONE, TWO, "slices/b/slice.yaml", "clusters/east.yaml")),
    st.sampled_from((None, GOOD, BAD, "nonsense: [", slice_("b", clusters=("west",)), cluster(nodes=1))),
    max_size=3,
)


@law(60)
@given(st.lists(CHANGES, max_size=4))
def test_what_is_tried_leaves_no_trace(rounds: list[Mapping[str, str | None]]) -> None:
    """Whatever is tried, in whatever order taken back: everything is known as before."""
    main = documents()
    before = known(main)
    undone = [main.tried(data(changes))[1] for changes in rounds]
    for undo in reversed(undone):
        main.take_back(undo)
    assert known(main) == before


@law(60)
@given(CHANGES)
def test_what_is_refused_leaves_no_trace(changes: Mapping[str, str | None]) -> None:
    main = documents()
    before = known(main)
    problems, undo = main.judged(data(changes), {})
    if not problems:
        main.take_back(undo)
    assert known(main) == before


ACCEPTED = says(readable(ONE, gpr("a", "one").encode()), {})
HOLDS = {"a/one": status(Phase.PROVISIONED, accepted_spec=ACCEPTED)}
OVER = {"a/one": status(Phase.COMPLETED, accepted_spec=ACCEPTED)}


@pytest.mark.parametrize(
    ("changes", "requests", "want"),
    [
        pytest.param({ONE: GOOD}, {}, set(), id="a valid edit brings none"),
        pytest.param({TWO: gpr("a", "two")}, {}, set(), id="nor does a new request"),
        pytest.param({ONE: BAD}, {}, {(ONE, "BadValue")}, id="an invalid file is refused by its own rules"),
        pytest.param(
            {"slices/a/slice.yaml": None}, {}, {(ONE, "UnknownSlice")}, id="so is what breaks another file"
        ),
        pytest.param(
            {"slices/a/slice.yaml": None}, OVER, set(), id="files of finished requests may break"
        ),
        pytest.param({ONE: GOOD}, HOLDS, {(ONE, "ForbiddenEdit")}, id="a lease keeps its terms"),
        pytest.param({ONE: gpr("a", "one", extend="30m")}, HOLDS, set(), id="but may ask for an extension"),
        pytest.param(
            {ONE: gpr("a", "one", nodes=99, earlyRelease=True)}, HOLDS, set(), id="an end excuses its file"
        ),
        pytest.param(
            {ONE: gpr("a", "one", earlyRelease=True), TWO: gpr("a", "two", clusters=["mars"])},
            {},
            {(TWO, "ClusterNotAllowed"), (TWO, "UnknownCluster")},
            id="but no other file",
        ),
    ],
)  # fmt: skip
def test_what_refuses_a_change(changes, requests, want):
    problems, _ = documents().judged(data(changes), requests)
    assert {(problem.file, problem.rule) for problem in problems} == want


def test_terms_that_differed_before_are_not_blamed_on_this_edit():
    main = documents(FLEET | {ONE: gpr("a", "one", nodes=2)})
    assert main.judged(data({ONE: gpr("a", "one", nodes=2, extend="30m")}), HOLDS)[0] == ()


def test_in_a_full_slice_the_new_request_is_refused_and_not_the_edit_of_another():
    """As the controller has it: what it accepted counts, and one more does not."""
    main = documents(FLEET | {"project.yaml": project(limits={"requestsPerSlice": 1})})
    main.repository.is_recorded = {ONE}.__contains__
    (problem,) = main.judged(data({gpr_path("a/new"): gpr("a", "new")}), {})[0]
    assert problem.rule == "TooManyRequests"
    assert main.judged(data({ONE: GOOD}), {})[0] == ()


def test_each_change_is_judged_on_top_of_those_before_it():
    main = documents()
    assert main.judged(data({"slices/c/slice.yaml": slice_("c")}), {})[0] == ()
    assert main.judged(data({gpr_path("c/x"): gpr("c", "x")}), {})[0] == ()
    (problem,) = main.judged(data({"slices/c/slice.yaml": None}), {})[0]
    assert problem.file == gpr_path("c/x")
