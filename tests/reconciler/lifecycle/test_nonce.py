"""The id of a request may come from its file: the label `egs.dev/nonce` makes it known before anybody answered (A7)."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from schemas.documents.identity import NONCE, uid_of
from schemas.reading.strict_yaml import load
from schemas.reading.yaml_text import dump
from schemas.status.gpr_status import GPRStatus, Phase
from tests.support.profile import law
from tests.support.world import World, at, gpr, gpr_path

KEY = "a/train"


def labelled(nonce: str | None, key: str = KEY, **spec: object) -> dict[str, str]:
    """The file of a request with that label, or with none."""
    slice_, _, name = key.partition("/")
    content: Any = load(gpr(slice_, name, **spec).encode())  # type: ignore[arg-type]
    if nonce is not None:
        content["metadata"]["labels"] = {NONCE: nonce, "team": "vision"}
    return {gpr_path(key): dump(content)}


def test_whoever_writes_the_file_knows_the_id() -> None:
    world = World(labelled("8c1f"))
    world.run(at(1))
    assert world.status(KEY).uid == uid_of(KEY, "8c1f")


def test_one_text_in_two_files_makes_two_ids() -> None:
    world = World(labelled("8c1f") | labelled("8c1f", "b/train") | labelled("8c1f", "a/other"))
    world.run(at(1))
    ids = {status.uid for status in world.facts().requests.values()}
    assert len(ids) == 3


def test_without_the_label_or_with_an_empty_one_the_controller_makes_the_id() -> None:
    world = World(labelled(None) | labelled("", "b/train"))
    world.run(at(1))
    made = {key: status.uid for key, status in world.facts().requests.items()}
    assert all(re.fullmatch("gpr-[0-9a-f]{8}-[0-9a-f]{4}", uid) for uid in made.values())
    assert made["b/train"] != uid_of("b/train", "")
    world.controller = world.start()
    world.run(at(2))
    assert {key: status.uid for key, status in world.facts().requests.items()} == made


def _without_time(status: GPRStatus) -> dict[str, object]:
    return status.model_dump(exclude={"conditions"})


def test_the_label_of_a_filed_request_may_change_and_nothing_follows() -> None:
    """Neither a waiting one nor one that holds nodes becomes another, is queued anew, or is told about."""
    later = "2026-11-21T10:00:00Z"
    world = World(labelled("one") | labelled("one", "b/train", notBefore=later))
    world.run(at(5))
    before, told = world.facts().requests, world.told()
    assert (before[KEY].phase, before["b/train"].phase) == (Phase.PROVISIONED, Phase.QUEUED)
    world.commit(labelled("two") | labelled(None, "b/train", notBefore=later))
    world.run(at(6))
    after = world.facts().requests
    assert {key: _without_time(status) for key, status in after.items()} == {
        key: _without_time(status) for key, status in before.items()
    }
    assert world.told() == told
    assert after[KEY].uid == uid_of(KEY, "one")


def test_a_copy_of_a_file_is_another_request() -> None:
    """The name is part of what is hashed, so a label that was copied along takes nobody's id."""
    world = World(labelled("one"))
    world.run(at(1))
    world.commit(labelled("one", "b/copy"))
    world.run(at(2))
    requests = world.facts().requests
    assert requests["b/copy"].uid == uid_of("b/copy", "one") != requests[KEY].uid == uid_of(KEY, "one")


NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,8}[a-z0-9]/[a-z][a-z0-9]{0,8}", fullmatch=True)


@law(200)
@given(NAMES, st.text(max_size=40), NAMES, st.text(max_size=40))
def test_ids_differ_where_name_or_text_does(key: str, nonce: str, other: str, second: str) -> None:
    assert (uid_of(key, nonce) == uid_of(other, second)) == ((key, nonce) == (other, second))
