"""The comment as a reader meets it: short, true, the same every time, and harmless whoever named the files. B8, D8."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reconciler.pulls import check_comment, check_sentences, check_text
from reconciler.pulls.check_json import data
from schemas.reading.yaml_text import dump
from tests.reconciler.pulls.pull import Pulls, request
from tests.support.world import at, cluster, gpr_path, slice_

FULL = request("b/run", 4, "3h")
EVIL = "@octocat ![x](https://evil.example/a.png) <img src=x> `|` fixes #1 [a](b)\n\n# head"
WHOLE = Path(__file__).with_name("comment.md")


def busy() -> Pulls:
    """All nodes are held for three hours, and `b/next` waits for all of them."""
    found = Pulls.on(FULL).then(request("b/next", 4, "2h"))
    found.world.run(at(20))
    return found


def test_the_whole_comment() -> None:
    pulls = busy()
    files = {**request("a/urgent", 2, "2h", priority=190), **request("a/big", 3, "1h")}
    text = check_comment.markdown(pulls.check(files, by="bo@example.com"))
    got = text.replace(pulls.main()[:10], "MAIN")
    assert got == WHOLE.read_text(), got


@pytest.mark.parametrize(
    ("files", "line"),
    [
        pytest.param({}, "Good to merge; no request waits longer.", id="nothing of ours changes"),
        pytest.param(
            request("a/big", 3),
            "Valid. `a/big` waits for approval; no request waits longer.",
            id="an approval",
        ),
        pytest.param(
            {**request("a/big", 3), **request("b/big", 17, "1h")},
            "It cannot be merged like this: 1 error.",
            id="error",
        ),
        pytest.param(
            {gpr_path("b/next"): None},
            "Good to merge; no request waits longer.",
            id="a cancellation delays nobody",
        ),
    ],
)
def test_the_first_line_says_it_all(files: dict[str, str | None], line: str) -> None:
    text = check_comment.markdown(busy().check(files)).splitlines()
    assert text[2].partition(" ")[2].partition(" ")[2] == line


def test_a_stale_branch_is_told() -> None:
    pulls = Pulls.on()
    start = pulls.main()
    pulls.world.commit(FULL)
    text = check_comment.markdown(pulls.check(request("a/x"), start))
    assert "The branch is 1 commit behind main" in text
    assert "The controller has not processed current main yet" in text


def test_a_commit_status_is_short_and_says_the_same() -> None:
    check = busy().check(request("a/urgent", 2, "2h", priority=190))
    said = check_sentences.description(check)
    assert len(said) <= check_sentences.DESCRIPTION
    assert "`" not in said
    assert check_comment.state(check) == "success"
    assert check_comment.state(busy().check({gpr_path("a/x"): "kind: GPR\n"})) == "failure"


def hostile() -> dict[str, str | None]:
    """Names, values and texts that somebody chose for what a forge might make of them."""
    named = {"apiVersion": "egs.dev/v1alpha1", "kind": "GPR", "metadata": {"name": "x"}}
    spec = {"slice": "a", "nodes": 1, "duration": "1h", "gpuShape": EVIL, "displayName": EVIL, EVIL: 1}
    return {
        "slices/a/gprs/@octocat.yaml": "x: 1\n",
        "slices/a/gprs/`</details>|[x](y).yaml": "x: 1\n",
        "slices/a/gprs/\u202egnp.yaml": "x: 1\n",
        gpr_path("a/x"): dump({**named, "spec": spec}),
        "clusters/east.yaml": cluster(nodes=4, access={"kubeconfig": EVIL}),
        "slices/a/slice.yaml": slice_("a", description=EVIL, clusters=["east"], members=[{"email": EVIL}]),
    }


def test_hostile_names_and_values_do_nothing_on_a_forge() -> None:
    text = check_comment.markdown(busy().check(hostile(), by="eve@example.com"))
    prose = re.sub(r"`[^`\n]*`", "", text)  # what stands in code spans is shown as it is
    own = re.sub(r"<!-- egs-check -->|</?(details|summary|b|sub)>", "", prose)
    assert not re.search(r"(?<!\\)[<>\[]|!\[|(?<!\\)@|[@#]\w", own), own
    assert "\u202e" not in text


def test_hostile_names_steer_no_terminal_and_command_no_workflow() -> None:
    check = busy().check(hostile())
    lines = check_text.text(check).splitlines()
    assert all(line.isprintable() for line in lines)
    assert not any(line.startswith("::") for line in lines)
    for line in check_comment.workflow_commands(check).splitlines():
        assert re.match(r"::(error|warning|notice) file=[^,]*,line=\d+,col=\d+,title=\w+::", line), line


def test_a_comment_is_never_larger_than_forges_take() -> None:
    files: dict[str, str | None] = {
        gpr_path(f"a/x{n}"): f"kind: {'@' * 300}\nx{n}: [{EVIL!r}]\n" for n in range(400)
    }
    files |= {f"slices/a/gprs/{'é' * 100}{n}.yaml": "x" for n in range(200)}
    assert len(check_comment.markdown(busy().check(files, by="eve@example.com")).encode()) < 60_000


def test_data_has_everything_the_comment_has() -> None:
    found = data(busy().check(request("a/urgent", 2, "2h", priority=190), by="bo@example.com"))
    (moved,) = found["moved"]
    assert (moved["name"], moved["cause"], moved["by"]) == ("next", "HigherRankArrived", "a/urgent")
    assert found["actor"] == "bo@example.com"
    assert found["against"]["queueDigest"].startswith("sha256:")
