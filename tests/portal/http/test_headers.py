"""Bodies on their way in: how much is held, of one request and of all, and what becomes of callers who go away."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest
from starlette.types import Message, Receive, Scope, Send

from portal.http import headers
from portal.http.headers import MOST_BODY, Around
from tests.support.portal import KEYS, Site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("site"))
    yield made
    made.close()


class Inner:
    """An application that keeps what it was sent."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        self.bodies.append((await receive())["body"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})


class Asking:
    """One request, whose body comes in pieces."""

    def __init__(self, around: Around) -> None:
        self._around = around
        self._coming: asyncio.Queue[Message] = asyncio.Queue()
        self.status = 0

    def sends(self, piece: bytes, *, more: bool = True) -> None:
        """One more piece."""
        self._coming.put_nowait({"type": "http.request", "body": piece, "more_body": more})

    def leaves(self) -> None:
        """The caller hangs up."""
        self._coming.put_nowait({"type": "http.disconnect"})

    async def answered(self) -> None:
        """The whole of it."""
        known = [(b"authorization", f"Bearer {KEYS['bo-editor']}".encode())]
        scope = {"type": "http", "method": "POST", "path": "/", "headers": known}
        await self._around(scope, self._coming.get, self._send)

    async def _send(self, message: Message) -> None:
        self.status = message.get("status", self.status)


def test_a_body_in_tiny_pieces_costs_as_much_as_it_is_long(site: Site) -> None:
    inner = Inner()

    async def story() -> None:
        asking = Asking(Around(inner, site.portal.parts))
        for _ in range(40_000):
            asking.sends(b"x")
        asking.sends(b"", more=False)
        await asking.answered()

    begun_s = time.thread_time()
    asyncio.run(story())
    assert inner.bodies == [b"x" * 40_000]
    assert time.thread_time() - begun_s < 3


def test_whoever_goes_away_is_not_answered_for(site: Site) -> None:
    inner = Inner()

    async def story() -> int:
        asking = Asking(Around(inner, site.portal.parts))
        asking.sends(b'{"gprName": "half a wi')
        asking.leaves()
        await asking.answered()
        return asking.status

    assert asyncio.run(story()) == 0
    assert inner.bodies == []


def test_all_bodies_together_have_a_bound(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever comes when it is full is sent away; what was held is free again when its request is over."""
    monkeypatch.setattr(headers, "MOST_BODIES", MOST_BODY + 100)
    inner = Inner()

    async def story() -> list[int]:
        around = Around(inner, site.portal.parts)
        first, second, third, fourth = (Asking(around) for _ in range(4))
        running = asyncio.create_task(first.answered())
        first.sends(b"x" * MOST_BODY)
        await asyncio.sleep(0)
        second.sends(b"y" * 101, more=False)
        await second.answered()
        first.sends(b"", more=False)
        await running
        third.sends(b"z" * (MOST_BODY + 1))
        await third.answered()
        fourth.sends(b"w" * MOST_BODY, more=False)
        await fourth.answered()
        return [first.status, second.status, third.status, fourth.status]

    assert asyncio.run(story()) == [200, 503, 413, 200]
    assert [len(body) for body in inner.bodies] == [MOST_BODY, MOST_BODY]
