"""Which pull request a job is about, as each forge tells it; a strange file tells nothing and breaks nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.pulls.ci_event import Event, event_of

HEAD, BASE = "a" * 40, "b" * 40
GITHUB = {
    "action": "synchronize",
    "number": 7,
    "pull_request": {
        "user": {"login": "bo", "id": 77, "type": "User"},
        "head": {"ref": "more", "sha": HEAD, "repo": {"fork": True}},
        "base": {"ref": "main", "sha": BASE},
    },
}
GITEA = {
    "action": "opened",
    "pull_request": {
        "number": 3,
        "user": {"id": 5, "login": "bo", "full_name": "Bo"},
        "base": {"label": "main", "ref": "main", "sha": BASE},
        "head": {"label": "more", "ref": "more", "sha": HEAD},
    },
}


def of_file(folder: Path, content: object) -> Event | None:
    file = folder / "event.json"
    file.write_text(json.dumps(content))
    return event_of({"GITHUB_EVENT_PATH": str(file)})


@pytest.mark.parametrize(
    ("content", "want"),
    [
        pytest.param(GITHUB, Event("main", BASE, HEAD, "bo", 77), id="GitHub, from a fork"),
        pytest.param(GITEA, Event("main", BASE, HEAD, "bo", 5), id="Gitea and Forgejo"),
        pytest.param(
            {"merge_group": {"head_sha": HEAD, "base_sha": BASE, "base_ref": "refs/heads/main"}},
            Event("main", BASE, HEAD),
            id="a merge queue names nobody",
        ),
        pytest.param({"ref": "refs/heads/main"}, None, id="a push is no pull request"),
        pytest.param(
            {"pull_request": {"user": {"id": True}, "head": {"sha": "HEAD"}, "base": {"ref": "a..b"}}},
            Event(),
            id="what cannot be is not taken",
        ),
        pytest.param([], None, id="a list"),
    ],
)
def test_events(tmp_path: Path, content: object, want: Event | None) -> None:
    assert of_file(tmp_path, content) == want


def test_gitlab_tells_by_variables() -> None:
    found = event_of(
        {
            "CI_MERGE_REQUEST_IID": "4",
            "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
            "CI_MERGE_REQUEST_SOURCE_BRANCH_SHA": "",
            "CI_COMMIT_SHA": HEAD,
            "CI_MERGE_REQUEST_DIFF_BASE_SHA": BASE,
            "GITLAB_USER_ID": "12",
            "GITLAB_USER_LOGIN": "bo",
        }
    )
    assert found == Event("main", BASE, HEAD, "bo", 12)


def test_outside_of_ci_there_is_none(tmp_path: Path) -> None:
    assert event_of({}) is None
    assert event_of({"GITHUB_EVENT_PATH": str(tmp_path / "nothing")}) is None


KEYS = ("pull_request", "user", "id", "login", "head", "base", "sha", "ref")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner),
        max_leaves=12,
    )
)
def test_no_content_breaks_it(tmp_path_factory: pytest.TempPathFactory, content: object) -> None:
    of_file(tmp_path_factory.mktemp("event"), content)
