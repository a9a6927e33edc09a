"""Why a request waits, over the wire: no plan of its own for the sentences, and a bound for what is tried."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from portal.identity.redaction import Redactor
from portal.vendor.gpr_answers import found_in
from portal.views import why as page
from portal.views.why import Why, why
from reconciler.queries import alternatives, schedule
from reconciler.queries.why import changes, reasons
from tests.support.portal import Site

KEY = "vision/large"


@pytest.fixture
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """`vision/large` waits for two who have the nodes, and would start sooner if it were smaller."""
    made = Site(tmp_path_factory.mktemp("site"))
    made.file("nlp/runs", nodes=3, duration="8h")
    made.settle()
    made.file(KEY, nodes=3, duration="4h", clusters=["east"])
    made.settle()
    yield made
    made.close()


def _why(site: Site) -> Why:
    found = found_in(site.view, KEY)
    assert found is not None
    return why(site.view, found, Redactor(site.portal.caller("ada-owner"), site.view))


def test_it_says_what_the_command_says(site: Site) -> None:
    said = _why(site)
    assert said.reasons == reasons(site.view.state, KEY)
    assert [one.field for one in said.alternatives] == [
        one.field for one in changes(site.view.state, KEY).found
    ]
    assert said.alternatives
    assert said.untried == 0


def test_the_sentences_cost_no_plan(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The view has one; whoever asks again does not try again what was tried."""
    first = _why(site)

    def planned(_: object) -> None:
        raise AssertionError("a plan was made")

    monkeypatch.setattr(schedule, "plan", planned)
    monkeypatch.setattr(alternatives, "plan", planned)
    assert _why(site) == first


def test_what_there_is_no_time_for_is_counted(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "MOST_S", -1.0)
    said = _why(site)
    assert (said.alternatives, said.untried > 0) == ([], True)
    assert said.reasons == reasons(site.view.state, KEY)


def test_a_plan_that_would_take_too_long_is_not_begun(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """It could not be stopped."""
    monkeypatch.setattr(alternatives, "plain_seconds", lambda _: 60.0)
    assert _why(site).untried > 0
