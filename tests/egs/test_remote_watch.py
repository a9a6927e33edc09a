"""`egs watch` on a server (D16, H10): the streams as one, each change once, as it comes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from egs.commands.errors import Said
from egs.commands.watch import as_text
from egs.remote.streams import merged, moves
from egs.sse import Message
from tests.support.kube import eventually
from tests.support.portal import KEYS, Site

LINE = {"at": "2026-11-21T08:00:00Z", "slice": "vision", "name": "run"}
STANDS = {"reason": None, "estimatedStartTime": None, "estimatedEndTime": None}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("site"))
    made.settle()
    made.file("vision/run", nodes=1, duration="1h")
    made.settle()
    yield made
    made.close()


def test_a_request_is_followed_from_what_it_is_to_what_it_becomes(site: Site, tmp_path: Path) -> None:
    """Another process, as a person or a script runs it; it ends when nobody reads on."""
    out = tmp_path / "out"
    with site.server() as url, out.open("w") as file:
        env = {"PATH": "/usr/bin", "EGS_SERVER": url, "EGS_API_KEY": KEYS["bo-editor"], "HOME": str(tmp_path)}
        words = [sys.executable, "-m", "egs.cli", "watch", "--gpr", "vision/run", "-o", "json"]
        watching_ = subprocess.Popen(words, env=env, stdout=file, cwd=Path(__file__).parents[2])
        try:

            def told() -> list[dict[str, object]]:
                return [json.loads(line) for line in out.read_text().splitlines() if line.endswith("}")]

            eventually(lambda: any(line["kind"] == "request" for line in told()), "where it stands is told")
            site.pass_time(10)
            eventually(
                lambda: any(line.get("phase") == "Provisioned" for line in told()), "that it runs is told"
            )
            eventually(lambda: any(line["kind"] == "event" for line in told()), "events are told")
        finally:
            watching_.terminate()
            watching_.wait()
    lines = [line for line in told() if line["kind"] == "request"]
    assert lines[0]["was"] is None
    assert all(after["was"]["phase"] == before["phase"] for before, after in pairwise(lines))


def test_the_first_error_ends_all_streams() -> None:
    def broken() -> Iterator[dict[str, object]]:
        yield {"kind": "event"}
        raise Said("no", "No", 1)

    def endless() -> Iterator[dict[str, object]]:
        while False:
            yield {}

    assert next(merged([endless], 0.01)) is None, "silence is told, so that a caller can look elsewhere"
    found = merged([broken, endless], 60)
    assert next(found) == {"kind": "event"}
    with pytest.raises(Said, match="no"):
        next(found)


def test_what_is_as_before_is_not_told_again() -> None:
    data = {"name": "vision/run", "phase": "Queued", "estimatedStartTime": "", "endTime": "", "reason": ""}
    messages = [Message("gpr", json.dumps(data | {"rank": rank}), str(rank)) for rank in (3, 2, 1)]
    found = moves([*messages, Message("error", "SessionEnded: log in again", "")])
    first = next(found)
    assert (first["phase"], first["was"]) == ("Queued", None)
    with pytest.raises(Said, match="log in again") as caught:
        next(found)
    assert caught.value.reason == "SessionEnded"


@pytest.mark.parametrize(
    ("line", "want"),
    [
        pytest.param(
            {**LINE, "kind": "request", "phase": "Queued", **STANDS, "was": None},
            "vision/run  Queued",
            id="first",
        ),
        pytest.param(
            {**LINE, "kind": "request", "phase": "Provisioned", **STANDS, "was": {"phase": "Queued"}},
            "vision/run  Queued → Provisioned",
            id="then",
        ),
        pytest.param(
            {
                "kind": "event",
                "at": LINE["at"],
                "reason": "NodeOut",
                "request": None,
                "cluster": "east",
                "node": "n1",
            }
            | {"message": "it is out"},
            "NodeOut  east/n1  it is out",
            id="an event of a node",
        ),
    ],
)
def test_a_line_for_people(line: dict[str, object], want: str) -> None:
    assert as_text(line).endswith(want)
