"""The corpus of approvals on a forge: reviews that count, and those that do not (D8, D9, E5).

As in test_approval_corpus.py every case acts before a real controller, which asks a forge over HTTP.
"""

from __future__ import annotations

from pathlib import Path

from reconciler.approvals.forge_reviews import Reviews
from reconciler.approvals.who_approved import decision_reader_of
from reconciler.forges.open_forge import open_forge
from reconciler.trust.gate import sources_of
from tests.reconciler.trust.corpus import reviews
from tests.support import world
from tests.support.court import Court
from tests.support.forge import Forge, served
from tests.support.machinekeys import key


def test_no_other_review_counts_and_every_admins_does(tmp_path: Path) -> None:
    court = Court(tmp_path, "forge", [*reviews.FORGERIES, *reviews.GENUINE], {}, forge="github")
    assert court.forge is not None
    court.push({"project.yaml": project(court.forge)}, "ada")
    with served(court.forge, tmp_path) as address:
        court.start(
            lambda store, settings: {
                "sources": sources_of(settings, open_forge(address)),
                "decision_reader": decision_reader_of(settings, store, Reviews(open_forge(address), "main")),
            }
        )
        court.hold()
    assert court.wrong() == {}


def project(forge: Forge) -> str:
    """`robo` is a bot that is listed, and the Kay that is listed has another account of that name."""
    forge.user("robo", bot=True)
    ids = {name: forge.user(name).id for name in ("ada", "grace", "robo")} | {"kay": 99999}
    admins = [
        {"email": f"{name}@example.com", "forge": {"login": name, "id": id_}} for name, id_ in ids.items()
    ]
    admins[0]["keys"] = [key("ada").public]  # type: ignore[assignment]
    return world.project(
        admins=admins,
        limits={"nodesPerRequest": 1000, "deletionsAtOnce": 1000},
        approval={"twoAdminsAbove": {"nodes": 20}},
    )
