"""Who gets a request approved, and who does not: a corpus of forgeries and of genuine words (D8, D9, E5, C10).

Every case acts on a real repository before a real controller. The forgeries are tried twice: carried by a member, and
by an admin whom main believes, so that what main refuses is also shown not to count where it got in. None of the
forgeries may count, each genuine word must.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.court import Bench, Case, Court
from tests.support.realkeys import Key, ssh_key
from tests.trust.corpus import keys, lives, merges, statements

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


@pytest.fixture(scope="module")
def benches(tmp_path_factory: pytest.TempPathFactory, rsa_key: Key) -> Mapping[tuple[str, str], Bench]:
    """Every case as it came out, by who carried the words and its sentence."""
    REAL["rsa"], REAL["ecdsa"] = rsa_key, ssh_key(tmp_path_factory.mktemp("ecdsa"), kind="ecdsa", bits=256)
    found = {}
    for courier in ("bo", "ada"):
        court = _court(tmp_path_factory.mktemp(courier), [*FORGERIES, *GENUINE], courier)
        found |= {(courier, bench.case.id): bench for bench in court.benches.values()}
    return found


def _court(folder: Path, cases: list[Case], courier: str) -> Court:
    court = Court(
        folder, "signature", cases, keys.PROJECT, keys.trust_folder(REAL["rsa"], REAL["ecdsa"]), courier
    )
    court.start(lambda store, settings: {})
    court.hold()
    return court


@pytest.mark.parametrize("courier", ["bo", "ada"])
@pytest.mark.parametrize("case", FORGERIES, ids=lambda case: case.id)
def test_no_forgery_counts(benches: Mapping[tuple[str, str], Bench], case: Case, courier: str) -> None:
    bench = benches[courier, case.id]
    assert bench.verdict == case.want, bench.status


@pytest.mark.parametrize("courier", ["bo", "ada"])
@pytest.mark.parametrize("case", GENUINE, ids=lambda case: case.id)
def test_every_genuine_word_counts(
    benches: Mapping[tuple[str, str], Bench], case: Case, courier: str
) -> None:
    bench = benches[courier, case.id]
    assert bench.verdict == case.want, bench.status


def test_the_corpus_is_as_large_as_it_has_to_be() -> None:
    """At least 60 forgeries and 30 genuine words, none of them twice."""
    assert len({case.id for case in FORGERIES}) == len(FORGERIES)
    assert len({case.id for case in GENUINE}) == len(GENUINE)
    assert len(FORGERIES) >= 60
    assert len(GENUINE) >= 30
