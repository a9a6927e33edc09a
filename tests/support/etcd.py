"""The store behind a control plane that the tests started: what changed there, and the end of keys.

It answers at once what the API server needs a listing for, or thirty, one for each kind. The API server and the
controllers learn from their watches that keys are gone, as they learn what other API servers write.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Sequence
from http.client import HTTPConnection
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from reconciler.clusters.kubernetes.api.api_client import Api, Json

REGISTRY = "/registry/"
"""What the keys of an API server begin with."""
PER_CALL = 128
"""Operations that the store takes in one transaction."""
STORED_AS = {
    "nodes": "minions",
    "customresourcedefinitions": "apiextensions.k8s.io/customresourcedefinitions",
}


def prefix_of(path: str) -> str:
    """What the keys of a collection begin with."""
    plural = path.rpartition("/")[2]
    return f"{REGISTRY}{STORED_AS.get(plural, plural)}/"


class Found(NamedTuple):
    """What changed under a prefix after some revision."""

    keys: tuple[str, ...]
    """Those that are there; a deleted one is missing in `count` only."""
    count: int
    """Of all keys there, changed or not."""
    revision: int
    """Of the store at that moment."""


class Etcd:
    """One etcd on this machine."""

    def __init__(self, url: str) -> None:
        self._server = HTTPConnection(urlsplit(url).netloc, timeout=30)

    def changed(self, after: int = 0, prefix: str = REGISTRY) -> Found:
        """Since revision `after`."""
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        where = {"key": _coded(prefix), "range_end": _coded(end)}
        got = self._asked("range", {**where, "keys_only": True, "min_mod_revision": after + 1})
        keys = tuple(b64decode(item["key"]).decode() for item in got.get("kvs") or ())
        return Found(keys, int(got.get("count", 0)), int(got["header"]["revision"]))

    def delete(self, keys: Sequence[str]) -> int:
        """The revision at which they are gone."""
        revision = 0
        for at in range(0, len(keys), PER_CALL):
            ends = [{"request_delete_range": {"key": _coded(key)}} for key in keys[at : at + PER_CALL]]
            revision = int(self._asked("txn", {"success": ends})["header"]["revision"])
        return revision

    def _asked(self, method: str, body: Json) -> Json:
        self._server.request("POST", f"/v3/kv/{method}", json.dumps(body))
        answer = self._server.getresponse()
        found: Json = json.loads(answer.read())
        assert answer.status == 200, found
        return found


def _coded(text: str) -> str:
    return b64encode(text.encode()).decode()


def store_in(folder: Path) -> Etcd | None:
    """The one that `kube up FOLDER` started, if it left its process' id there; it needs neither TLS nor a password."""
    try:
        process = int((folder / "etcd.pid").read_text())
        words = Path(f"/proc/{process}/cmdline").read_text().split("\0")
        url = words[words.index("--listen-client-urls") + 1]
    except (OSError, ValueError, IndexError):
        return None
    return Etcd(url) if url.startswith("http://127.0.0.1:") else None


class Listings:
    """Whole collections of an API server, asked for again only when something in them changed."""

    def __init__(self, api: Api, store: Etcd | None) -> None:
        """Without a store they are asked for each time."""
        self._api, self._store = api, store
        self._held: dict[str, tuple[Found, list[Json]]] = {}

    def items(self, path: str) -> list[Json]:
        """As they are now, to be read only."""
        if self._store is None:
            return list(self._api.items(path))
        before, held = self._held.get(path, (Found((), -1, 0), []))
        found = self._store.changed(before.revision, prefix_of(path))
        if found.keys or found.count != before.count:
            held = list(self._api.items(path))
            self._held[path] = found, held
        return held
