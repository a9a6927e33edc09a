"""Who may touch which ref, by name alone, and what git tells a hook; the rest is in tests/e2e/test_receive.py. A6."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.processes import push_hook
from reconciler.processes.push_hook import Push, Receiver, pushes, refusal_by_name
from reconciler.store.git.local_store import LocalStore
from reconciler.trust import gate
from reconciler.trust.machines import Machines
from reconciler.trust.signature_check import SystemVerifier
from reconciler.trust.step_evidence import Sources
from tests.support.landing import Land
from tests.support.world import gpr, gpr_path

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
        pytest.param("", "refs/egs/x", False, id="nobody is known, a hidden ref of ours"),
        pytest.param("", "egs", False, id="nobody is known: what leaves no room for egs/status"),
        pytest.param("ada", "egs", False, id="a person, the same"),
        pytest.param("controller", "egs", False, id="the controller, the same"),
        pytest.param("", f"refs/replace/{OLD}", False, id="nobody is known, another commit in its place"),
        pytest.param("ada", f"refs/replace/{OLD}", False, id="a person, the same of theirs"),
        pytest.param("ada", "refs/notes/commits", True, id="a person, notes"),
        pytest.param("ada", "egs-more", True, id="a person, a branch that begins like ours"),
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
    with pytest.raises(ValueError, match="not a line of a receive hook"):
        pushes([line])


@pytest.mark.parametrize(
    "last", [{gpr_path("a/x"): gpr("a", "x", move=9)}, {"NEWS": "good"}], ids=["bad", "good"]
)
def test_what_one_push_cannot_be_judged_with_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: dict[str, str]
) -> None:
    monkeypatch.setattr(push_hook, "MOST_ROUNDS", 2)
    monkeypatch.setattr(gate, "WORK", 5)
    land = Land.begun(tmp_path)
    old = tip = land.at
    for number in range(20):
        tip = land.commit({"NEWS": str(number)}, "bo", tip)
    tip = land.commit(last, "bo", tip)
    sources = Sources("signature", land.keyring, SystemVerifier())
    with closing(LocalStore(land.repo)) as store:
        receiver = Receiver(store, sources, Machines(land.keyring, "signature"), "", land.now)
        (sentence,) = receiver.refusals([Push("refs/heads/main", old, tip)])
        assert "smaller parts" in sentence
