"""Keeps the admission objects in place that give pods of slices their nodes and no others.

`admission_policies` defines the objects. New ones are created before old ones are removed, so that an upgraded API
server, which then uses policies instead of our webhook, is never without either. Comparing costs no call;
every write is conditional on the version it was decided on, and refused if the object has a newer stamp. The
object that records the authors of GPR objects exists once for all projects of a cluster: it has no stamp,
every project maintains it, and none removes it except after replacing it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from reconciler.clusters.kubernetes.admission import webhook_certificates
from reconciler.clusters.kubernetes.admission.admission_policies import is_shared, needs_webhook, objects
from reconciler.clusters.kubernetes.admission.closed_nodes import ClosedNodes, closed_nodes_of
from reconciler.clusters.kubernetes.admission.object_shapes import (
    CONFIG_MAP,
    KINDS,
    Webhook,
    differing,
    path_of,
)
from reconciler.clusters.kubernetes.admission.pod_review import Repair, unplaced
from reconciler.clusters.kubernetes.admission.webhook import SERVICE
from reconciler.clusters.kubernetes.api.api_client import Api, Json, Rejected
from reconciler.clusters.kubernetes.api.api_features import ADMISSION, Features, serves_requests
from reconciler.clusters.kubernetes.api.informer import Informer, key_of
from reconciler.clusters.kubernetes.names import CLOSED_NODES, MANAGED_BY, MANAGER, OBJECT_STAMP, OWNER
from reconciler.clusters.kubernetes.nodes.cluster_view import Known, managed, owners_of
from reconciler.clusters.kubernetes.nodes.node_inventory import Node, Pod
from reconciler.clusters.kubernetes.nodes.node_marks import late, stamp_of, write_stamp
from reconciler.clusters.kubernetes.tenancy.object_repair import AGAIN, Quarrels
from reconciler.model.cluster_port import Answer, Busy, Difference, Done, Refused, Stamp
from schemas.documents.cluster import Admission, ClusterSpec
from schemas.documents.pool import Pool
from schemas.errors import UserError

log = logging.getLogger(__name__)

ASK_AGAIN = timedelta(minutes=1)
"""Maximum age of our knowledge of the webhook's authority, which changes once in years, and of custom resources."""
NOTHING = ClosedNodes()
TAKEN = frozenset({404, 409, 422})
"""Answers to the repair of a pod that changed or ended in between."""


@dataclass(frozen=True, slots=True)
class Site:
    """The project, and where the API server finds our webhook."""

    project: str
    namespace: str
    url: str = ""  # https://host:port, instead of our Service in `namespace`
    grace_s: int = 0  # minimum grace period of GPU pods, at most the cluster's notice


class Closed:
    """What is closed to pods outside slices; computed again only after a node changed. One owner."""

    def __init__(self, spec: ClusterSpec, named: Mapping[str, Pool], system: str) -> None:
        self._spec, self._named, self._system = spec, named, system
        self._last: tuple[Mapping[str, Node], ClosedNodes] = ({}, NOTHING)

    def of(self, known: Known) -> ClosedNodes:
        """For the currently managed nodes."""
        if self._last[0] is not known.nodes:
            nodes = managed(known, self._spec, self._named)
            self._last = (known.nodes, closed_nodes_of(nodes, self._spec.admission.outsiders, self._system))
        return self._last[1]


class Placement:
    """Maintains one cluster's admission objects of one project."""

    def __init__(
        self,
        api: Api,
        features: Features,
        admission: Admission,
        site: Site,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        self._api, self._features, self._admission, self._site = api, features, admission, site
        self._known = {
            kind: Informer(api, f"{ADMISSION}/{plural}", self._kept, f"{MANAGED_BY}={MANAGER}", wake)
            for kind, plural in KINDS.items()
            if _served(kind, features)
        }
        maps = f"/api/v1/namespaces/{site.namespace}/configmaps"
        self._known[CONFIG_MAP] = Informer(
            api, maps, self._kept, f"{MANAGED_BY}={MANAGER},{CLOSED_NODES}", wake
        )
        self._had: dict[str, Json] = {}  # by object, the wanted content when it last matched
        self._quarrels = Quarrels()
        self._webhook: tuple[datetime, Webhook] | None = None
        self._looked: datetime | None = None  # for custom resources, last check

    @property
    def informers(self) -> tuple[Informer[Json], ...]:
        """All its watches; the owner starts and stops them."""
        return tuple(self._known.values())

    def _kept(self, item: Json) -> Json | None:
        """Objects of other projects are ignored."""
        ours = (item["metadata"].get("labels") or {}).get(OWNER) == self._site.project
        return dict(item) if ours or is_shared(item) else None

    def ensure(self, stamp: Stamp, now: datetime, known: ClosedNodes = NOTHING) -> Answer:
        """Ensures exactly the right objects; `known` is what is closed to pods outside slices."""
        wanted, missing = self._wanted(now, known)
        answer: Answer = missing or Done()
        for item in wanted:
            told = self._put(item, stamp, now)
            answer = answer if told is None or not isinstance(answer, Done) else told
        if not isinstance(answer, Done):
            return answer  # nothing is removed before its replacement exists
        return self._drop(self._left_over(wanted), stamp)

    def remove(self, stamp: Stamp) -> Answer:
        """Removes all of this project's objects: pods of its slices are no longer judged."""
        return self._drop(self._left_over([]), stamp)

    def differences(self, now: datetime, known: ClosedNodes = NOTHING) -> tuple[Difference, ...]:
        """What `ensure` would change."""
        wanted, missing = self._wanted(now, known)
        found = [Difference("", "admission webhook", "missing", missing.message)] if missing else []
        for item in wanted:
            have = self._have(item)
            fields = differing(have, item) if have is not None else []
            if have is None:
                found.append(Difference("", _called(item), "missing"))
            elif fields:
                before = self._had.get(_called(item))
                is_old = before is not None and have is not None and not differing(have, before)
                how: Literal["outdated", "changed"] = "outdated" if is_old else "changed"
                found.append(Difference("", _called(item), how, ", ".join(fields)))
            else:
                self._had[_called(item)] = item
        if not missing:
            found += [Difference("", _called(item), "extra") for item in self._left_over(wanted)]
        return tuple(found)

    def unplaced(self, pods: Mapping[str, Pod], slices: Mapping[str, tuple[str, ...]]) -> tuple[Repair, ...]:
        """What `repair` would change."""
        if self._admission.mode == "none":
            return ()
        return unplaced((pod for _, pod in sorted(pods.items())), owners_of(slices))

    def repair(self, pods: Mapping[str, Pod], slices: Mapping[str, tuple[str, ...]]) -> None:
        """Adds the toleration to GPU pods that were admitted unjudged; `slices` maps slices to namespaces."""
        for found in self.unplaced(pods, slices):
            try:
                self._api.patch(found.path, found.patch)
            except Rejected as no:
                if no.status not in TAKEN:
                    raise
                continue
            log.info("pod given its toleration path=%s", found.path)

    def _wanted(self, now: datetime, known: ClosedNodes) -> tuple[list[Json], Refused | None]:
        """The objects, and what prevents some of them."""
        try:
            needed = needs_webhook(self._features, self._admission)
        except UserError as error:
            return [], Refused(error.reason, str(error))
        webhook = self._reached(now) if needed else None
        self._look(now)
        site = self._site
        wanted = objects(self._features, self._admission, site.project, webhook, known, site.grace_s)
        if needed and webhook is None:
            return wanted, Refused(
                "AdmissionMissing",
                f"no webhook has ever run here (there is no Secret {self._site.namespace}/"
                f"{webhook_certificates.SECRET}), but this API server needs one; "
                "start egs-reconciler admission in this cluster, as the chart does",
            )
        return wanted, None

    def _reached(self, now: datetime) -> Webhook | None:
        """Our webhook, once one has run here: before that the API server must not call it."""
        if self._webhook is None or now - self._webhook[0] >= ASK_AGAIN:
            ca = webhook_certificates.authorities(self._api, self._site.namespace)
            if ca is None:
                self._webhook = None
                return None
            self._webhook = (now, Webhook(ca, self._site.namespace, SERVICE, self._site.url))
        return self._webhook[1]

    def _look(self, now: datetime) -> None:
        """Our custom resource may be added or removed at any time."""
        if self._looked is None or now - self._looked >= ASK_AGAIN:
            self._features = replace(self._features, requests=serves_requests(self._api))
            self._looked = now

    def _have(self, item: Json) -> Json | None:
        return self._known[item["kind"]].items().get(key_of(item))

    def _left_over(self, wanted: list[Json]) -> list[Json]:
        """Bindings are removed before their policies: a binding without a policy makes every pod an error."""
        kept = {_called(item) for item in wanted}
        succeeded = any(is_shared(item) for item in wanted)
        found = [
            {**item, "kind": kind}
            for kind in reversed((CONFIG_MAP, *KINDS))
            if kind in self._known
            for _, item in sorted(self._known[kind].items().items())
        ]
        return [item for item in found if _called(item) not in kept and (succeeded or not is_shared(item))]

    def _put(self, want: Json, stamp: Stamp, now: datetime) -> Answer | None:
        """None: nothing to do."""
        have, called = self._have(want), _called(want)
        if have is not None:
            held = stamp_of(have)
            if (refused := late(called, held, stamp)) is not None:
                return refused
            is_marked = held is not None and held.term == stamp.term
            if not differing(have, want) and (is_marked or is_shared(want)):
                return None
        return self._write(want, have, stamp, now)

    def _write(self, want: Json, have: Json | None, stamp: Stamp, now: datetime) -> Answer | None:
        path, content = path_of(want), json.dumps(want, sort_keys=True)
        if (until := self._quarrels.rests_until(path, content, now)) is not None:
            return Busy(until, f"{_called(want)} is changed again and again; pausing until then")
        done = self._tried(path, want, have, stamp) or self._tried(path, want, None, stamp)
        if done is None:
            return Busy(now + AGAIN, f"{_called(want)} was changed concurrently")
        if isinstance(done, Refused):
            return done
        if have is None or differing(have, want):
            self._quarrels.repaired(path, content, now)
        self._known[want["kind"]].learn(done)
        return None

    def _tried(self, path: str, want: Json, have: Json | None, stamp: Stamp) -> Json | Refused | None:
        """None: it is not as we know it. The server itself writes a policy's status soon after each change."""
        try:
            return self._written(path, want, have, stamp)
        except Rejected as no:
            if no.status != 409:
                raise
            return None

    def _written(self, path: str, want: Json, have: Json | None, stamp: Stamp) -> Json | Refused:
        """The object as the server has it afterwards. Foreign metadata stays."""
        # An object without our label is not watched; its name is still ours.
        have = have or self._api.find(path)
        if have is None:
            meta = {**want["metadata"], "annotations": _mark(want, stamp)}
            return self._api.create(path.rpartition("/")[0], {**want, "metadata": meta})
        if (refused := late(_called(want), stamp_of(have), stamp)) is not None:
            return refused
        theirs = have["metadata"]
        meta = {
            **theirs,
            "labels": {**(theirs.get("labels") or {}), **want["metadata"]["labels"]},
            "annotations": {**(theirs.get("annotations") or {}), **_mark(want, stamp)},
        }
        return self._api.replace(path, {**want, "metadata": meta})

    def _drop(self, items: list[Json], stamp: Stamp) -> Answer:
        for item in items:
            refused = late(_called(item), stamp_of(item), stamp)
            if refused is not None:
                return refused
            self._api.delete(path_of(item), uid=item["metadata"]["uid"])
            self._known[item["kind"]].forget(key_of(item), int(item["metadata"]["resourceVersion"]))
            log.info("admission object removed kind=%s name=%s", item["kind"], item["metadata"]["name"])
        return Done()


def _served(kind: str, features: Features) -> bool:
    if kind.startswith("Mutating") and "Policy" in kind:
        return features.mutating_policies
    return features.validating_policies or "Policy" not in kind


def _mark(item: Json, stamp: Stamp) -> dict[str, str]:
    return {} if is_shared(item) else {OBJECT_STAMP: write_stamp(stamp)}


def _called(item: Json) -> str:
    return f"{item['kind']} {item['metadata']['name']}"
