"""Past states on the command line: the same on a repository and on a server, by commit, instant and time ago (D14)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from schemas.reading.units import format_instant, parse_instant, seconds
from tests.egs.remote import Shell
from tests.support.portal import Site
from tests.support.world import slice_

READS = [
    "get gprs",
    "get slices",
    "get clusters",
    "get nodes --cluster east",
    "get capacity --hours 3",
    "get queue",
    "get calendar --cluster east",
    "plan",
    "describe gpr vision/runs",
    "describe gpr nlp/waits",
    "describe slice vision",
    "describe cluster east",
    "describe node east/h100-1",
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One runs and one waits; six hours later both are over, another runs, and a slice has another weight."""
    made = Site(tmp_path_factory.mktemp("site"))
    made.file("vision/runs", nodes=4, duration="2h", clusters=["east"])
    made.settle()
    made.file("nlp/waits", nodes=4, duration="1h", clusters=["east"])
    made.pass_time(20)
    yield made
    made.close()


@pytest.fixture(scope="module")
def then(site: Site) -> dict[str, str]:
    """Names of that state."""
    commit, at, when = site.view.status, site.now, format_instant(site.now)
    site.pass_time(350)
    site.file("nlp/later", nodes=1, duration="12h")
    people = {"members": [{"email": "dora@example.com"}], "quota": {"gpus": 64}}
    site.commit({"slices/nlp/slice.yaml": slice_("nlp", ("east",), weight=3, **people)})
    site.pass_time(10)
    site.clock.set(site.view.facts.at)
    ago = int((site.view.facts.at - at).total_seconds())
    late = format_instant(site.view.facts.at - timedelta(minutes=1))
    return {
        "late": late,
        "commit": commit[:12],
        "instant": when,
        "ago": f"{ago}s" if ago % 60 else f"{ago // 60}m",
    }


@pytest.mark.parametrize("line", READS)
@pytest.mark.parametrize("how", ["commit", "instant"])
def test_the_state_of_then_is_the_same_in_both_modes(
    shell: Shell, then: dict[str, str], line: str, how: str
) -> None:
    at = ("--at", then[how])
    here, there = (on(f"{line} -o json", *at) for on in (shell.on_repository, shell.on_server))
    assert here.code == 0, here.err
    assert there.data == here.data
    assert shell.on_server(line, *at) == shell.on_repository(line, *at)


@pytest.mark.parametrize("to", [(), ("late",)])
def test_what_differs_since_then_is_the_same_in_both_modes(
    shell: Shell, then: dict[str, str], to: tuple[str, ...]
) -> None:
    """H14: requests with their fates, people and rules."""
    words = (then["commit"], *(then[name] for name in to))
    here, there = (on("diff", *words, "-o", "json") for on in (shell.on_repository, shell.on_server))
    assert there.data == here.data
    ends = {row["name"] for row in here.data["requests"] if row["change"] == "ended"}
    assert ends == {"runs", "waits"}
    assert here.data["to"]["at"] > here.data["from"]["at"]
    tables = [on("diff", *words) for on in (shell.on_repository, shell.on_server)]
    assert tables[0] == tables[1]
    assert tables[0].out.splitlines()[0].split() == ["WHAT", "CHANGE", "WAS", "NOW", "BECAUSE"]
    if not to:
        assert "dora@example.com in nlp" in tables[0].out
        assert "slices/nlp/slice.yaml" in tables[0].out


@pytest.mark.parametrize("on", ["on_server", "on_repository"])
def test_a_difference_from_now_to_then_is_refused(shell: Shell, then: dict[str, str], on: str) -> None:
    done = getattr(shell, on)("diff", "1m", then["commit"])
    assert done.code in (1, 2)
    assert "exchange the two" in done.err
    assert getattr(shell, on)("diff", "1m", "--cluster", "east").code == 2


@pytest.mark.parametrize("on", ["on_server", "on_repository"])
def test_it_is_not_the_present(shell: Shell, then: dict[str, str], on: str) -> None:
    def phases(*at: str) -> dict[str, str]:
        return {row["name"]: row["phase"] for row in getattr(shell, on)("get gprs -o json", *at).data}

    assert phases("--at", then["ago"]) == {"runs": "Provisioned", "waits": "Queued"}
    assert phases() == {"runs": "Completed", "waits": "Completed", "later": "Provisioned"}


@pytest.mark.parametrize("on", ["on_server", "on_repository"])
def test_the_calendar_of_then_begins_then(shell: Shell, then: dict[str, str], on: str) -> None:
    """Its window opens with the state that it shows."""
    found = getattr(shell, on)("get calendar --hours 6 -o json", "--at", then["instant"]).data
    assert found["begin"] == seconds(parse_instant(then["instant"]))


@pytest.mark.parametrize("on", ["on_server", "on_repository"])
@pytest.mark.parametrize("at", ["2020-01-01T00:00:00Z", "f" * 40, "yesterday", "2099-01-01T00:00:00Z"])
def test_what_is_no_state_is_refused_in_a_sentence(
    shell: Shell, then: dict[str, str], on: str, at: str
) -> None:
    done = getattr(shell, on)("get queue", "--at", at)
    assert done.code in (1, 2)
    assert (done.out, done.err.count("\n")) == ("", 1)
    assert any(word in done.err for word in ("kept", "like 2h", "in the future")), done.err


@pytest.mark.parametrize(
    "line", ["get events", "get problems", "get workloads", "get requests", "describe request x"]
)
def test_what_has_no_past_has_no_such_option(shell: Shell, line: str) -> None:
    done = shell.on_server(line, "--at", "2h")
    assert done.code == 2
    assert "--at" in done.err


@pytest.mark.parametrize("words", [("--ref", "main"), ("--against", "main"), ("--instance", "rows.csv")])
def test_a_past_plan_is_of_no_other_branch(
    shell: Shell, then: dict[str, str], words: tuple[str, str]
) -> None:
    done = shell.on_repository("plan", "--at", "2h", *words)
    assert (done.code, words[0] in done.err) == (2, True), done.err
