"""The promises of the documentation, checked from outside: the status branch as published, and the nodes as they are.

It uses no code and no state of a controller. Each law names the page that promises it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from benchmarks.repositories import git

CAUSES = frozenset({
    "HigherRankArrived", "Approved", "Requeued", "RequestChanged", "AdminMoved", "PolicyChanged", "MaintenanceAdded",
    "NodeLost", "NodeReplaced", "ChecksFailed", "ClusterUnreachable", "ControllerAbsent",
})  # fmt: skip
"""docs/explain/estimates.md: a promise moves later only for one of these."""
OVER = frozenset({"Completed", "Cancelled", "Rejected", "Failed"})
OVERDUE = timedelta(minutes=2)
"""docs/guides/high-availability.md: any running controller carries out what is this late."""
SLACK = timedelta(seconds=10)
"""Two polls, a push and a hand-over on a busy machine."""

ON_TIME = timedelta(minutes=1)
"""docs/guides/high-availability.md: a hand-over this late still counts as on time, and its end stays."""

Leases = Mapping[tuple[str, str], str]
"""(cluster, node) -> uid of the lease that it serves."""


@dataclass(slots=True)
class Lease:
    """Observations of one lease on nodes."""

    first: datetime
    last: datetime


@dataclass(slots=True)
class Auditor:
    """Call `look` a few times a second; `broken` collects sentences."""

    repo: Path
    broken: list[str] = field(default_factory=list)
    lateness: list[timedelta] = field(
        default_factory=list
    )  # of ends, less the time in which no controller could act
    commits: int = 0
    filed_anew: int = 0  # requests without nodes that got a new id after the branch was lost
    requests: dict[str, dict[str, Any]] = field(default_factory=dict)  # as committed last, by slice/name
    _tip: str | None = None
    _term: tuple[int, int] = (0, 0)
    _blobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    _leases: dict[str, Lease] = field(default_factory=dict)  # by uid
    _on: Leases = field(default_factory=dict)
    _uids: dict[str, str] = field(default_factory=dict)  # of every request that was ever seen
    _forgotten: dict[str, str] = field(default_factory=dict)  # ids that may change, as the branch was lost
    _ends: dict[str, datetime] = field(default_factory=dict)  # of leases, by uid, as committed last
    _unattended: list[tuple[datetime, datetime]] = field(default_factory=list)
    _told: set[str] = field(default_factory=set)

    # -- looking ---------------------------------------------------------------------------------------------

    def look(self, on: Leases, now: datetime, *, attended: bool, was_reset: bool) -> None:
        """One look: leases of nodes first, so that what they show was decided by what is read afterwards.

        `attended`: a healthy controller could act; `was_reset`: a fault set the branch back.
        """
        if not attended:
            begun = self._unattended[-1] if self._unattended else None
            if begun is not None and now - begun[1] < timedelta(seconds=2):
                self._unattended[-1] = (begun[0], now)
            else:
                self._unattended.append((now, now))
        tip = self._read_tip()
        if tip is not None and tip != self._tip:
            self._read(tip, now, was_reset=was_reset)
        self._judge_nodes(on, now)
        self._on = on

    def adopted(self) -> None:
        """An operator adopted a repository whose status no controller knew: what waited is filed anew."""
        self._forget_ids()

    def _forget_ids(self) -> None:
        """docs/guides/back-up.md: what a put-back did not know is filed anew; leases keep their ids."""
        held = {key for key, status in self.requests.items() if status.get("assignment")}
        self._forgotten |= {key: uid for key, uid in self._uids.items() if key not in held}
        self._uids = {key: uid for key, uid in self._uids.items() if key in held}

    def _say(self, law: str, sentence: str, now: datetime) -> None:
        if sentence not in self._told:
            self._told.add(sentence)
            self.broken.append(f"{now:%H:%M:%S} [{law}] {sentence}")

    def _read_tip(self) -> str | None:
        try:
            found = git(self.repo, "for-each-ref", "--format=%(objectname)", "refs/heads/egs/status")
        except OSError:
            return None
        return found.decode().strip() or None

    def _read(self, tip: str, now: datetime, *, was_reset: bool) -> None:
        before, self.requests = self.requests, dict(self._statuses(tip))
        self._tip, self.commits = tip, self.commits + 1
        term = self._stamp(tip)
        if was_reset:
            self._forget_ids()
        else:
            if term <= self._term:
                self._say("one writer", f"the branch went from {self._term} to {term}", now)
            self._judge_commit(before, now)
        self._term = max(term, self._term)
        for key, status in self.requests.items():
            self._uids.setdefault(key, status["uid"])
            self.filed_anew += self._forgotten.pop(key, status["uid"]) != status["uid"]
            if status.get("endTime") and status.get("startTime"):
                self._ends[status["uid"]] = _time(status["endTime"])

    def _stamp(self, tip: str) -> tuple[int, int]:
        text = git(
            self.repo,
            "log",
            "-1",
            "--format=%(trailers:key=Term,valueonly)%x00%(trailers:key=Seq,valueonly)",
            tip,
        )
        term, _, seq = text.decode().partition("\0")
        return int(term.strip() or 0), int(seq.strip() or 0)

    def _statuses(self, tip: str) -> Iterator[tuple[str, dict[str, Any]]]:
        rows = git(self.repo, "ls-tree", "-r", "-z", tip, "slices/").split(b"\0")
        listed = [(row.split()[2].decode(), row.split(b"\t")[1].decode()) for row in rows if row]
        self._fetch({oid for oid, _ in listed} - self._blobs.keys())
        for oid, path in listed:
            parts = path.split("/")
            if len(parts) == 4 and parts[2] == "gprs":
                yield f"{parts[1]}/{parts[3].removesuffix('.yaml')}", self._blobs[oid]

    def _fetch(self, oids: set[str]) -> None:
        out = git(
            self.repo, "cat-file", "--batch", given="".join(f"{oid}\n" for oid in sorted(oids)).encode()
        )
        while out:
            head, _, rest = out.partition(b"\n")
            oid, _, size = head.decode().split()
            body, out = rest[: int(size)], rest[int(size) + 1 :]
            document = yaml.load(body, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
            self._blobs[oid] = document.get("status", document)

    # -- laws ------------------------------------------------------------------------------------------------

    def _judge_commit(self, before: Mapping[str, dict[str, Any]], now: datetime) -> None:
        running = Counter(
            key.partition("/")[0] for key, s in self.requests.items() if s["phase"] == "Provisioned"
        )
        for slice_, count in running.items():
            if count > 1:  # docs/reference/kinds/slice.md
                self._say("one request a slice", f"slice {slice_} has {count} Provisioned requests", now)
        for key, status in self.requests.items():
            if self._uids.get(key, status["uid"]) != status["uid"]:
                self._say("a request keeps its id", f"{key} has a new id", now)
            for slip in status.get("slips") or ():
                if slip["cause"] not in CAUSES:
                    self._say("closed list", f"{key} slipped for {slip['cause']}", now)
            old = before.get(key)
            if old is not None and old["uid"] == status["uid"]:
                self._judge_promise(key, old, status, now)
        for key, old in before.items():
            if key not in self.requests and old["phase"] in ("Provisioning", "Provisioned", "Releasing"):
                self._say("no lease is lost", f"{key} was {old['phase']} and is gone", now)

    def _judge_promise(self, key: str, old: dict[str, Any], new: dict[str, Any], now: datetime) -> None:
        """docs/explain/estimates.md: a start moves later with a slip that names the cause, or not at all."""
        was, now_is = old.get("estimatedStartTime"), new.get("estimatedStartTime")
        if (
            old["phase"] != "Queued"
            or new["phase"] not in ("Queued", "Provisioning")
            or not was
            or not now_is
        ):
            return
        if _time(now_is) > _time(was) and len(new.get("slips") or ()) <= len(old.get("slips") or ()):
            self._say("promises", f"{key} moved from {was} to {now_is} without a cause", now)

    def _judge_nodes(self, on: Leases, now: datetime) -> None:
        by_uid: dict[str, set[tuple[str, str]]] = defaultdict(set)
        for node, uid in on.items():
            by_uid[uid].add(node)
        holders = {
            status["uid"]: (key, status) for key, status in self.requests.items() if status.get("assignment")
        }
        for uid in by_uid:
            seen = self._leases.setdefault(uid, Lease(now, now))
            seen.last = now
            self._judge_end(uid, now)
        for uid, (key, status) in holders.items():
            self._judge_kept(key, uid, status, on, now)

    def _judge_kept(self, key: str, uid: str, status: dict[str, Any], on: Leases, now: datetime) -> None:
        """docs/reference/kinds/gpr.md: a running request keeps its nodes until its end."""
        if status["phase"] != "Provisioned" or not status.get("endTime") or now >= _time(status["endTime"]):
            return
        held = status["assignment"]
        for name in held["nodes"]:
            node = (held["cluster"], name)
            if self._on.get(node) == uid and on.get(node) != uid:
                self._say(
                    "nodes stay", f"{name} was taken from {key} before its end {status['endTime']}", now
                )

    def _judge_end(self, uid: str, now: datetime) -> None:
        """docs/guides/high-availability.md: an end is strict while a controller runs that can carry it out."""
        end = self._ends.get(uid)
        if end is None or now <= end:
            return
        late = now - end - self._absent(end, now)
        if late > OVERDUE + SLACK:
            self._say("strict ends", f"{uid} holds nodes {late} after its end {end}", now)

    def _absent(self, begin: datetime, end: datetime) -> timedelta:
        spans = ((max(begin, first), min(end, last)) for first, last in self._unattended)
        return sum((last - first for first, last in spans if last > first), timedelta())

    # -- the end ---------------------------------------------------------------------------------------------

    def finish(self, filed: Mapping[str, timedelta], ended_early: set[str], now: datetime) -> None:
        """After the last fault, when everything should be over: nothing is left, and nothing was lost."""
        for (_, name), uid in sorted(self._on.items()):
            self._say("everything ends", f"{name} still serves {uid}", now)
        for key in sorted(filed):
            status = self.requests.get(key)
            if status is None and key not in ended_early:
                self._say("no request is lost", f"{key} has no status", now)
            elif status is not None and status["phase"] not in OVER:
                self._say("everything ends", f"{key} is still {status['phase']}", now)
        known = {status["uid"]: key for key, status in self.requests.items()} | {
            uid: key for key, uid in self._uids.items()
        }
        for uid, lease in self._leases.items():
            key = known.get(uid)
            if key is None:
                self._say("every lease is a request's", f"{uid} held nodes and no status ever named it", now)
                continue
            if uid in self._ends:
                self.lateness.append(
                    max(timedelta(), lease.last - self._ends[uid] - self._absent(self._ends[uid], lease.last))
                )
            status = self.requests.get(key)
            whole = key not in ended_early and status is not None and status["phase"] == "Completed"
            short = filed.get(key, timedelta()) - (lease.last - lease.first)
            if whole and not (status or {}).get("retryCount") and short > ON_TIME + SLACK:
                self._say("nodes stay", f"{key} had its nodes {short} less than it asked for", now)


def _time(text: object) -> datetime:
    found = text if isinstance(text, datetime) else datetime.fromisoformat(str(text))
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
