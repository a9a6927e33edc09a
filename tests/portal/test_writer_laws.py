"""Laws of writing (K1): whatever is asked at the same time of several replicas, main has exactly what was answered."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.http.errors import ApiError
from portal.writes.write_request import Landed, WriteRequest
from tests.support import repos
from tests.support.portal import Replica, Site
from tests.support.profile import law
from tests.support.wishes import request_ids, wish
from tests.support.world import gpr, gpr_path

ASKED = st.tuples(
    st.integers(0, 1),  # replica
    st.sampled_from(("bo-editor", "ada-owner", "cy-editor")),
    st.integers(0, 3),  # file
    st.sampled_from((1, 1, 1, 2, 0)),  # nodes; 0 is invalid
    st.sampled_from(("", "", "k")),  # idempotency key
)
_COUNT = itertools.count()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("laws"))
    made.replica()
    yield made
    made.close()


async def _submitted(replica: Replica, change: WriteRequest, order: int) -> Landed | Exception:
    await asyncio.sleep(0.002 * order)
    try:
        return await replica.writer.submit(change)
    except ApiError as error:
        return error


@law(12)
@given(asked=st.lists(ASKED, min_size=1, max_size=12), by_hand=st.lists(st.integers(0, 3), max_size=2))
def test_exactly_the_answered_ones_each_once(
    site: Site, asked: list[tuple[int, str, int, int, str]], by_hand: list[int]
) -> None:
    run = next(_COUNT)
    before = set(request_ids(site))
    wishes = [
        wish(site, who, f"vision/r{run}-{file}", f"{key}{run}-{file}-{nodes}" if key else "", nodes=nodes)
        for _, who, file, nodes, key in asked
    ]

    async def story() -> list[Landed | Exception]:
        tasks = [
            asyncio.create_task(_submitted(site.replicas[which], change, order))
            for order, ((which, *_), change) in enumerate(zip(asked, wishes, strict=True))
        ]
        for file in by_hand:
            path = gpr_path(f"nlp/h{run}-{file}")
            await asyncio.to_thread(repos.commit, site.repo, {path: gpr("nlp", f"h{run}-{file}")})
        return list(await asyncio.gather(*tasks))

    answers = asyncio.run(story())
    there = [each for each in request_ids(site) if each not in before]
    assert len(there) == len(set(there)), "no commit comes twice"
    pushed = {each.id for each in answers if isinstance(each, Landed) and each.id}
    assert pushed == set(there), "main has what was answered, and nothing else"
    for (_, who, *_rest, nodes, _key), answer in zip(asked, answers, strict=True):
        if who == "cy-editor":
            assert isinstance(answer, ApiError)
            assert answer.status == 403 or nodes == 0
        if nodes == 0:
            assert isinstance(answer, ApiError)
    _same_keys_same_answers(wishes, answers)
    for file in by_hand:
        assert site.main(gpr_path(f"nlp/h{run}-{file}")), "nobody's push is overwritten"


def _same_keys_same_answers(wishes: list[WriteRequest], answers: list[Landed | Exception]) -> None:
    found: dict[tuple[str, str], set[str]] = {}
    for change, answer in zip(wishes, answers, strict=True):
        if change.idempotency and isinstance(answer, Landed) and answer.id:
            found.setdefault((change.caller.email, change.idempotency), set()).add(answer.commit)
    assert all(len(commits) == 1 for commits in found.values())


def test_a_hundred_at_once_on_two_replicas(site: Site) -> None:
    """None is lost and none is there twice, while two processes race for main."""
    wishes = [wish(site, "bo-editor", f"vision/many-{n}") for n in range(100)]

    async def story() -> list[Landed]:
        return list(
            await asyncio.gather(
                *(site.replicas[n % 2].writer.submit(change) for n, change in enumerate(wishes))
            )
        )

    commits = Counter(each.commit for each in asyncio.run(story()))
    assert len(commits) == 100
    there = repos.git(site.repo, "ls-tree", "-r", "--name-only", "main").splitlines()
    assert sum("/many-" in path for path in there) == 100
