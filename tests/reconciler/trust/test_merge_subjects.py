"""What a merge's subject says that it merges."""

from __future__ import annotations

import pytest

from reconciler.trust.merge_subjects import merges_main, names_another

MAIN = [
    "Merge branch 'main'",
    "Merge branch 'main' of https://forge.example.com/fleet",
    "Merge branch 'main' into topic",
    "Merge branches 'main' and 'topic'",
    "Merge branches 'topic', 'main' and 'other' of ../fleet",
    "Merge remote-tracking branch 'origin/main'",
    "Merge remote-tracking branch 'origin/main' into topic",
    "Merge remote-tracking branch 'origin/HEAD'",
    "Merge remote-tracking branches 'origin/topic' and 'upstream/main'",
    "Merge branch 'topic', remote-tracking branch 'origin/main'",
    "Merge branch 'topic' of ../one; branch 'main' of ../two",
]
ANOTHER = [
    "Merge branch 'fix/main' into 'main'",
    "Merge branch 'topic'",
    "Merge branch 'domain' into main",
    "Merge branch 'main2'",
    "Merge branch 'topic' of https://forge.example.com/'main'",
    "Merge remote-tracking branch 'origin/topic'",
    "Merge remote-tracking branch 'origin/fix/main'",
    "Merge pull request #7 from bo/main",
    "Merge pull request 'Raise it' (#7) from bo/main into main",
    "Merged in topic (pull request #7)",
    "Merged PR 7: raise it",
    "Raise it (#7)",
    "Merge merge request !7",
]
NEITHER = [
    "Merge commit '0123456789012345678901234567890123456789'",
    "Merge https://forge.example.com/fleet",
    "Merge tag 'v1'",
    "Our own words",
    "merge branch 'main'",
    "",
]


@pytest.mark.parametrize("subject", MAIN)
def test_main_is_among_what_is_merged(subject: str) -> None:
    assert merges_main(subject, "main")


@pytest.mark.parametrize("subject", ANOTHER)
def test_something_else_is_merged(subject: str) -> None:
    assert (merges_main(subject, "main"), names_another(subject, "main")) == (False, True)


@pytest.mark.parametrize("subject", NEITHER)
def test_nothing_is_said(subject: str) -> None:
    assert (merges_main(subject, "main"), names_another(subject, "main")) == (False, False)


def test_main_may_be_called_otherwise() -> None:
    assert merges_main("Merge branch 'trunk'", "trunk")
    assert names_another("Merge branch 'main'", "trunk")
