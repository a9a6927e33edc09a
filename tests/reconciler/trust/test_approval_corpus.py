"""Who gets a request approved, and who does not: a corpus of forgeries and of genuine words (D8, D9, E5, C10).

Every case acts on a real repository before a real controller. The forgeries are tried twice: carried by a member, and
by an admin whom main believes, so that what main refuses is also shown not to count where it got in. None of the
forgeries may count, each genuine word must.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reconciler.trust.corpus import keys, lives, merges, reviews, small, statements
from tests.support.court import Court
from tests.support.realkeys import Key, ssh_key

REAL: dict[str, Key] = {}
"""Keys that `ssh-keygen` made, once they are needed."""
GENUINE = [
    *statements.GENUINE,
    *keys.genuine(lambda: REAL["rsa"], lambda: REAL["ecdsa"]),
    *lives.GENUINE,
    *merges.GENUINE,
]
FORGERIES = [
    *statements.ALTERED,
    *statements.SPOILED,
    *statements.BOUNDS,
    *keys.FORGERIES,
    *lives.FORGERIES,
    *merges.FORGERIES,
]
SMALL = [*small.FORGERIES, *small.GENUINE]


@pytest.mark.parametrize("courier", ["bo", "ada"])
def test_no_forgery_counts_and_every_genuine_word_does(tmp_path: Path, rsa_key: Key, courier: str) -> None:
    REAL["rsa"], REAL["ecdsa"] = rsa_key, ssh_key(tmp_path, kind="ecdsa", bits=256)
    folder = keys.trust_folder(REAL["rsa"], REAL["ecdsa"])
    court = Court(tmp_path, "signature", [*FORGERIES, *GENUINE], keys.PROJECT, folder, courier)
    assert judged_wrongly(court) == {}


def test_a_team_with_one_admin_and_no_keys_outside_of_the_repository(tmp_path: Path) -> None:
    """D8: keys of project.yaml alone, and own requests."""
    assert judged_wrongly(Court(tmp_path, "signature", SMALL, small.PROJECT)) == {}


def judged_wrongly(court: Court) -> dict[str, object]:
    """The cases that did not come out as they should, by their sentence."""
    court.start(lambda store, settings: {})
    court.hold()
    return court.wrong()


def test_the_corpus_is_as_large_as_it_has_to_be() -> None:
    """At least 60 forgeries and 30 genuine words, none of them twice."""
    forgeries = [case.id for case in (*FORGERIES, *small.FORGERIES, *reviews.FORGERIES)]
    genuine = [case.id for case in (*GENUINE, *small.GENUINE, *reviews.GENUINE)]
    assert len({*forgeries, *genuine}) == len(forgeries) + len(genuine)
    assert len(forgeries) >= 60
    assert len(genuine) >= 30
