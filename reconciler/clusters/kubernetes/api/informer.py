"""The objects of a cluster, kept current by list and watch; each is reduced to the fields in use at once.

One thread per informer; `wake` is called on every relevant change and must return at once. A broken or
expired watch is resumed, or listed again if the server no longer has the old version. An unreadable object is
skipped. Readers get an immutable mapping and never wait for the network.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import timedelta
from threading import Condition, Event, Thread
from typing import Generic, TypeVar

from reconciler.clock import monotonic_s
from reconciler.clusters.kubernetes.api.api_client import Api, Json, Rejected
from reconciler.model import backoff
from schemas.errors import Fault

log = logging.getLogger(__name__)

T = TypeVar("T")

FIRST_LIST_S = 60.0
"""Longest wait for the first listing; later reads never wait."""
WATCH_S = 50
"""A watch is requested for this time only, so that a dead connection is noticed."""


def key_of(item: Json) -> str:
    """namespace/name, or just the name of an object without a namespace."""
    meta = item["metadata"]
    namespace = meta.get("namespace")
    return f"{namespace}/{meta['name']}" if namespace else str(meta["name"])


class Informer(Generic[T]):
    """Objects under one path; `keep` reduces an object, or returns None if it is irrelevant."""

    def __init__(
        self,
        api: Api,
        path: str,
        keep: Callable[[Json], T | None],
        selector: str | None = None,
        wake: Callable[[], None] = lambda: None,
        matters: Callable[[T], bool] = lambda _: True,
    ) -> None:
        """`matters` says which changes wake; equal reduced objects, as after a heartbeat, are no change."""
        self._api, self._path, self._keep, self._wake = api, path, keep, wake
        self._matters = matters
        self._gone: Callable[[Json], None] = lambda _: None
        self._params: dict[str, object] = {} if selector is None else {"labelSelector": selector}
        self._items: dict[str, T] = {}
        self._versions: dict[str, int] = {}
        self._changed = Condition()
        self._frozen: Mapping[str, T] | None = None
        self._ended = Event()
        self._synced = False
        self._contact_s = monotonic_s()
        self._trouble: Fault | None = None
        self._version = ""  # resourceVersion of the watch; empty: a full list is needed
        self._thread = Thread(target=self._run, name=f"watch {path}", daemon=True)

    def tell_gone(self, gone: Callable[[Json], None]) -> None:
        """Call it before the start: `gone` gets the last version of each deleted object; it returns at once."""
        self._gone = gone

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stops; the thread ends with its watch."""
        self._ended.set()

    def items(self) -> Mapping[str, T]:
        """All known objects, by namespace/name; the same mapping until something changes."""
        with self._changed:
            if self._frozen is None:
                self._frozen = dict(self._items)
            return self._frozen

    def wait_synced(self, timeout_s: float = FIRST_LIST_S) -> None:
        """Returns after the first listing; raises the `Fault` that prevents it, or ClusterUnreachable."""
        with self._changed:
            self._changed.wait_for(lambda: self._synced or self._trouble is not None, timeout_s)
            if self._synced:
                return
            raise self._trouble or Fault(f"{self._path} is not listed yet", "ClusterUnreachable")

    @property
    def silent_s(self) -> float:
        """Seconds since the last news from the server."""
        return monotonic_s() - self._contact_s

    @property
    def trouble(self) -> Fault | None:
        """Why the watch is interrupted; None if it is not."""
        return self._trouble

    def learn(self, item: Json) -> None:
        """Uses the answer to our own write at once; an answer older than the known object is dropped."""
        self._take(item)

    def forget(self, key: str, version: int) -> None:
        """It was deleted, unless a newer object of that name is known."""
        with self._changed:
            if self._versions.get(key, 0) <= version:
                self._drop(key)

    def _run(self) -> None:
        pause: timedelta | None = None
        while not self._ended.is_set():
            try:
                if not self._version:
                    self._version = self._list()
                self._follow()
                pause = None
                continue
            except Fault as fault:
                self._failed(fault)
                pause = backoff.WATCHES.longer(pause)
                if isinstance(fault, Rejected) and fault.status == 410:
                    self._version = ""
            except Exception:
                log.exception("watch broke path=%s; resuming", self._path)
                self._version, pause = "", backoff.WATCHES.longest
            self._ended.wait(pause.total_seconds())

    def _list(self) -> str:
        """Lists everything; returns the version to watch from."""
        found: set[str] = set()
        version = ""
        for page in self._api.pages(self._path, **self._params):
            if not version:
                self._forget_the_future(int(page["metadata"]["resourceVersion"]))
            version = str(page["metadata"]["resourceVersion"])
            for item in page.get("items") or ():
                found.add(key_of(item))
                self._take(item)
        with self._changed:
            for key in [key for key in {*self._items, *self._versions} if key not in found]:
                if self._versions.get(key, 0) <= int(version):
                    self._drop(key)
            self._synced = True
            self._heard()
        return version

    def _forget_the_future(self, version: int) -> None:
        """A server restored from a backup has earlier versions: these count again."""
        with self._changed:
            if version < max(self._versions.values(), default=0):
                self._versions = dict.fromkeys(self._items, 0)

    def _follow(self) -> None:
        """One watch, from the end of the last one; its progress is kept even if it breaks."""
        params = {**self._params, "resourceVersion": self._version, "timeoutSeconds": WATCH_S}
        with self._api.watch(self._path, allowWatchBookmarks="true", **params) as changes:
            self._heard()
            for change in changes:
                if self._ended.is_set():
                    break
                kind, item = change["type"], change["object"]
                if kind == "ERROR":
                    raise Rejected(str(item.get("message")), int(item.get("code", 500)))
                version = str(item["metadata"]["resourceVersion"])
                self._heard()
                if kind == "DELETED":
                    self._gone(item)
                    self.forget(key_of(item), int(version))
                elif kind != "BOOKMARK":
                    self._take(item)
                self._version = version

    def _take(self, item: Json) -> None:
        key, version = key_of(item), int(item["metadata"]["resourceVersion"])
        kept = self._read(key, item)
        with self._changed:
            if self._versions.get(key, 0) > version:
                return
            self._versions[key] = version
            before = self._items.pop(key, None)
            if kept is not None:
                self._items[key] = kept
            self._frozen = None
        if kept != before:
            self._tell(kept, before)

    def _read(self, key: str, item: Json) -> T | None:
        try:
            return self._keep(item)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            log.warning(
                "object not read path=%s object=%s error=%s; skipped, its owner should check",
                self._path,
                key,
                type(error).__name__,
            )
            return None

    def _drop(self, key: str) -> None:
        self._versions.pop(key, None)
        before = self._items.pop(key, None)
        if before is not None:
            self._frozen = None
            self._tell(before)

    def _tell(self, *items: T | None) -> None:
        if any(item is not None and self._matters(item) for item in items):
            self._wake()

    def _heard(self) -> None:
        with self._changed:
            self._contact_s, self._trouble = monotonic_s(), None
            self._changed.notify_all()

    def _failed(self, fault: Fault) -> None:
        with self._changed:
            self._trouble = fault
            self._changed.notify_all()
        log.debug("watch failed path=%s reason=%s message=%s", self._path, fault.reason, fault)
