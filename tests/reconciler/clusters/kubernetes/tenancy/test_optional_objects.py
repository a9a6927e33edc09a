"""Objects of an API that may be unreadable, where one may be refused: on a server of a few lines (C7, H13)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest

from reconciler.clusters.kubernetes.api.api_client import Api, Json, Rejected
from reconciler.clusters.kubernetes.queues.queue_writer import Kueue
from reconciler.clusters.kubernetes.services.export_objects import EXPORT, Served
from reconciler.clusters.kubernetes.services.exported_services import OPEN, Exports, Mcs
from reconciler.clusters.kubernetes.tenancy.object_repair import Item, Repairs
from reconciler.clusters.kubernetes.tenancy.optional_objects import LOOK, OptionalObjects, _Kept
from reconciler.model.cluster_port import Busy, Refused, SliceTerms
from reconciler.model.service_port import Peer
from schemas.errors import Fault
from tests.reconciler.clusters.kubernetes.tenants import FIRST, NOW, terms

WEST = Peer("west", "west", ("10.8.0.0/14",))
TERMS = replace(terms(), peers=(WEST,))
PLAIN = replace(TERMS, peers=None)


class Server:
    """Answers what it serves, or fails."""

    def __init__(self, *, cilium: bool = False, mcs: bool = True) -> None:
        self.trouble: Fault | None = None
        self.listed = 0
        self.served = {"v1beta1": "serviceexports"} if mcs else {}
        self.served |= {"v2": "ciliumnetworkpolicies"} if cilium else {}

    def find(self, path: str) -> Json | None:
        if self.trouble is not None:
            raise self.trouble
        version = path.rpartition("/")[2]
        return {"resources": [{"name": self.served[version]}]} if version in self.served else None

    def items(self, *_: object, **__: object) -> Iterator[Json]:
        self.listed += 1
        return iter(())


class Written:
    """Our objects; those named in `refused` are not written."""

    informers = ()

    def __init__(self, *have: Item, refused: str = "") -> None:
        self.have, self.refused, self.dropped = list(have), refused, list[str]()

    def find(self, namespace: str, what: str) -> Item | None:
        names = ((item, f"{item.kind}/{item.name}") for item in self.have)
        return next((item for item, name in names if (item.namespace, name) == (namespace, what)), None)

    def items(self) -> list[Item]:
        return self.have

    def put(self, want: Json, *_: object, **__: object) -> None:
        if want["metadata"]["name"] == self.refused:
            raise Rejected("a webhook says no", 403)

    def drop(self, _: str, what: str, __: str) -> None:
        self.dropped.append(what)


class _Offer(Mcs):
    """Exports of the Services `a` and `b`."""

    def _by_namespace(self) -> dict[str, list[str]]:
        return {"vision": ["a", "b"]}


class _InTurn(_Offer):
    is_in_turn = Kueue.is_in_turn


def made(offer: Mcs, written: Written) -> OptionalObjects[Served]:
    found = OptionalObjects(cast(Api, Server()), "default", offer)
    served = Served("v1beta1")
    kinds = {kind.name: kind for kind in served.kinds}
    found._kept, found._looked = _Kept(served, kinds, cast(Repairs, written), ()), NOW
    return found


@pytest.mark.parametrize(
    ("offer", "dropped"),
    [
        pytest.param(_Offer, ["ServiceExport/old"], id="exports follow their labels"),
        pytest.param(_InTurn, [], id="queues go when the new ones are there"),
    ],
)
def test_a_refused_object_withholds_no_other(offer: type[Mcs], dropped: list[str]) -> None:
    old = Item(EXPORT, "vision", "old", "vision", "u1", "1", {})
    written = Written(old, refused="a")
    (trouble,) = made(offer("default", "east", lambda: None), written).ensure(TERMS, ("vision",), FIRST, NOW)
    assert isinstance(trouble, Refused)
    assert written.dropped == dropped


def test_leftovers_are_looked_for_until_the_cluster_can_be_read() -> None:
    """Although no slice wants any, after a restart: else they would stay for ever."""
    server = Server()
    server.trouble = Rejected("out of order", 503)
    objects = OptionalObjects(cast(Api, server), "default", Mcs("default", "east", lambda: None))
    assert objects.differences((PLAIN,), NOW) == ()
    (answer,) = objects.remove("vision", NOW)
    assert isinstance(answer, Busy)
    assert "out of order" in answer.message
    server.trouble = None
    soon = NOW + LOOK - timedelta(seconds=1)
    assert isinstance(objects.remove("vision", soon)[0], Busy)
    assert server.listed == 0
    assert objects.remove("vision", NOW + LOOK) == []
    assert server.listed == 1


def test_an_unknown_controller_looks_again_at_once() -> None:
    server = Server()
    server.trouble = Rejected("who?", 401)
    objects = OptionalObjects(cast(Api, server), "default", Mcs("default", "east", lambda: None))
    with pytest.raises(Rejected):
        objects.differences((PLAIN,), NOW)
    server.trouble = None
    assert objects.differences((PLAIN,), NOW) == ()
    assert server.listed == 1


@pytest.fixture
def unwatched(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is served is known without a watch."""

    def watched(_: object, served: Served) -> Any:
        return _Kept(served, {}, cast(Repairs, Written()), ())

    monkeypatch.setattr(OptionalObjects, "_watched", watched)


def exports(server: Server) -> Exports:
    return Exports(cast(Api, server), "default", "east", lambda: None)


def addresses(found: SliceTerms) -> tuple[str, ...]:
    return tuple(address for peer in found.peers or () for address in peer.addresses)


@pytest.mark.usefixtures("unwatched")
@pytest.mark.parametrize(
    ("server", "want"),
    [
        pytest.param(Server(), WEST.addresses, id="only addresses are known"),
        pytest.param(Server(cilium=True), (), id="Cilium names clusters"),
        pytest.param(Server(mcs=False), (), id="nothing is exported"),
    ],
)
def test_addresses_are_open_only_where_that_is_needed(server: Server, want: tuple[str, ...]) -> None:
    assert addresses(exports(server).narrowed(TERMS, NOW, is_open=True)) == want


@pytest.mark.usefixtures("unwatched")
@pytest.mark.parametrize("is_open", [False, True])
def test_what_was_let_in_stays_while_the_cluster_cannot_be_read(is_open: bool) -> None:
    """And the status says so; at the start the policies that are there tell."""
    server = Server()
    found = exports(server)
    found.narrowed(TERMS, NOW, is_open)
    server.trouble = Rejected("out of order", 503)
    assert addresses(found.narrowed(TERMS, NOW + LOOK, is_open)) == WEST.addresses
    assert found.views(NOW + LOOK)["vision"].problem.endswith(OPEN)
    new = exports(server)
    assert addresses(new.narrowed(TERMS, NOW, is_open)) == (WEST.addresses if is_open else ())
    assert OPEN not in new.views(NOW)["vision"].problem
