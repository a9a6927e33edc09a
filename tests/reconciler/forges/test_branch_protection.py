"""What is not protected is said in sentences (C10)."""

from __future__ import annotations

import pytest

from reconciler.forges.branch_protection import gitea_lacks, github_lacks, gitlab_lacks
from reconciler.forges.json_fields import Json, Row

RULES: list[dict[str, Json]] = [
    {"type": "deletion"},
    {"type": "non_fast_forward"},
    {"type": "pull_request", "parameters": {"dismiss_stale_reviews_on_push": True}},
    {
        "type": "required_status_checks",
        "parameters": {"required_status_checks": [{"context": "egs/check", "integration_id": None}]},
    },
]
OLDER: dict[str, Json] = {
    "required_status_checks": {"strict": False, "contexts": ["egs/check"]},
    "required_pull_request_reviews": {"dismiss_stale_reviews": True},
    "allow_force_pushes": {"enabled": False},
    "allow_deletions": {"enabled": False},
}
GITLAB: dict[str, Json] = {
    "name": "main",
    "push_access_levels": [{"access_level": 0}],
    "allow_force_push": False,
}
PROJECT: dict[str, Json] = {"id": 1, "only_allow_merge_if_pipeline_succeeds": True}
GITEA: dict[str, Json] = {
    "rule_name": "main",
    "enable_push": False,
    "enable_force_push": False,
    "enable_status_check": True,
    "status_check_contexts": ["egs/check"],
    "dismiss_stale_approvals": True,
}


def _rules(rules: list[dict[str, Json]]) -> list[Row]:
    return [Row(rule, "rules") for rule in rules]


def test_githubs_rules_and_its_older_protection_each_suffice() -> None:
    assert github_lacks("main", _rules(RULES), None) == ()
    assert github_lacks("main", [], Row(OLDER, "protection")) == ()
    assert len(github_lacks("main", [], None)) == 5


@pytest.mark.parametrize(
    ("left_out", "word"),
    [
        ("deletion", "deleted"),
        ("non_fast_forward", "rewritten"),
        ("pull_request", "pushed"),
        ("required_status_checks", "egs/check"),
    ],
)
def test_each_rule_of_github_that_is_lacking_is_named(left_out: str, word: str) -> None:
    found = github_lacks("main", _rules([rule for rule in RULES if rule["type"] != left_out]), None)
    assert any(word in sentence for sentence in found)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"allow_force_push": True}, "rewritten"),
        ({"push_access_levels": [{"access_level": 40}]}, "pushed"),
        ({"push_access_levels": [{"access_level": 0}, {"user_id": 7, "access_level": None}]}, "pushed"),
    ],
)
def test_gitlabs_settings(change: dict[str, Json], word: str) -> None:
    assert gitlab_lacks("main", Row(PROJECT, "p"), Row(GITLAB, "b")) == ()
    (found,) = gitlab_lacks("main", Row(PROJECT, "p"), Row({**GITLAB, **change}, "b"))
    assert word in found
    assert len(gitlab_lacks("main", Row({}, "p"), None)) == 4


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"enable_push": True}, "pushed"),
        ({"enable_force_push": True}, "rewritten"),
        ({"status_check_contexts": ["other"]}, "egs/check"),
        ({"dismiss_stale_approvals": False}, "approvals"),
    ],
)
def test_giteas_rule(change: dict[str, Json], word: str) -> None:
    assert gitea_lacks("main", Row(GITEA, "b")) == ()
    (found,) = gitea_lacks("main", Row({**GITEA, **change}, "b"))
    assert word in found
    assert len(gitea_lacks("main", None)) == 5
