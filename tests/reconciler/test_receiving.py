"""Who may touch which ref, by name alone, and what git tells a hook; the rest is in tests/e2e/test_receive.py. A6."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.receiving import Push, pushes, refusal_by_name

OLD, NEW, NONE = "a" * 40, "b" * 40, "0" * 40


def push(branch: str, old: str | None = OLD, new: str | None = NEW) -> Push:
    return Push(f"refs/heads/{branch}" if not branch.startswith("refs/") else branch, old, new)


@pytest.mark.parametrize(
    ("pusher", "ref", "allowed"),
    [
        pytest.param("", "main", True, id="nobody is known: signatures decide"),
        pytest.param("", "egs/status", True, id="nobody is known: signatures decide of the status too"),
        pytest.param("ada", "main", True, id="a person, main"),
        pytest.param("ada", "more-nodes", True, id="a person, a branch"),
        pytest.param("ada", "refs/tags/v1", True, id="a person, a tag"),
        pytest.param("ada", "egs/status", False, id="a person, the status"),
        pytest.param("ada", "egs/agents/east/n1", False, id="a person, an agent's branch"),
        pytest.param("ada", "refs/egs/x", False, id="a person, a hidden ref of ours"),
        pytest.param("controller", "egs/status", True, id="the controller, the status"),
        pytest.param("controller", "main", False, id="the controller, main"),
        pytest.param("agent:east/n1", "egs/agents/east/n1", True, id="an agent, its branch"),
        pytest.param("agent:east/n1", "egs/agents/east/n2", False, id="an agent, another's"),
        pytest.param("agent:east/n1", "egs/agents/east/n1/x", False, id="an agent, below its branch"),
        pytest.param(
            "agent:east/n1", "refs/tags/egs/agents/east/n1", False, id="an agent, a tag of that name"
        ),
        pytest.param("agent:east/n1", "egs/agents/east/n1", True, id="an agent, its branch again"),
        pytest.param("applier:east", "egs/clusters/east", True, id="an applier, its branch"),
        pytest.param("applier:east", "egs/status", False, id="an applier, the status"),
        pytest.param("service:api", "main", True, id="a service pushes for people"),
        pytest.param("service:api", "egs/status", False, id="a service, the status"),
    ],
)
def test_names(pusher: str, ref: str, allowed: bool) -> None:
    assert (refusal_by_name(push(ref), pusher) is None) is allowed


@pytest.mark.parametrize("ref", ["main", "egs/status", "egs/agents/east/n1", "egs/clusters/east", "egs/x"])
@pytest.mark.parametrize("pusher", ["", "ada", "controller", "agent:east/n1"])
def test_nobody_deletes_what_others_read(pusher: str, ref: str) -> None:
    assert refusal_by_name(push(ref, new=None), pusher) is not None


def test_people_delete_their_own_branches() -> None:
    assert refusal_by_name(push("more-nodes", new=None), "ada") is None


def test_what_git_tells() -> None:
    lines = [
        f"{OLD} {NEW} refs/heads/main\n",
        f"{NONE} {NEW} refs/heads/new\n",
        f"{OLD} {NONE} refs/heads/a b\n",
    ]
    assert pushes(lines) == (
        Push("refs/heads/main", OLD, NEW),
        Push("refs/heads/new", None, NEW),
        Push("refs/heads/a b", OLD, None),
    )


@given(st.text(max_size=200))
def test_anything_else_is_refused_as_a_whole(line: str) -> None:
    with pytest.raises(ValueError, match="no line of git's"):
        pushes([line])
