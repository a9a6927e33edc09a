"""Questions that cost a plan are answered one at a time, and too many of them are sent away."""

from __future__ import annotations

import asyncio
from threading import Event

import pytest

from portal.http.costly_questions import MOST_WAITING, Costly
from portal.http.errors import ApiError


def test_one_at_a_time_and_not_too_many():
    """Whoever is sent away is told so at once; who waits gets their answer."""
    costly, go, running = Costly(), Event(), []

    def ask(number: int) -> int:
        running.append(number)
        go.wait(60)
        running.remove(number)
        assert not running, "another one ran beside it"
        return number

    async def asked() -> list[int]:
        waiting = [asyncio.ensure_future(costly.answer(ask, number)) for number in range(MOST_WAITING)]
        await asyncio.sleep(0)
        with pytest.raises(ApiError, match="are waiting"):
            await costly.answer(ask, -1)
        go.set()
        return await asyncio.gather(*waiting)

    assert asyncio.run(asked()) == list(range(MOST_WAITING))
    costly.stop()
