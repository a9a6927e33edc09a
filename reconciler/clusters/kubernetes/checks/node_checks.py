"""Checks a node before a start, during a lease, and after an end.

Some results come from API objects (`check_verdicts`). What only the node can measure is measured by one Job
with the image in the manifest (`check_jobs`), and judged by the manifest's thresholds (`measurements`).
Results are stored in the cluster (`check_records`): every controller gives the same answer until it is too old.

No call waits: each takes the next step and answers Busy until there are results. What a crash leaves behind
is found again by name, or by `sweep`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from reconciler.clusters.kubernetes.api.api_client import Api, Json, Rejected
from reconciler.clusters.kubernetes.api.informer import Informer
from reconciler.clusters.kubernetes.checks import check_jobs, check_verdicts, driver_upgrades, latency_peers
from reconciler.clusters.kubernetes.checks.check_jobs import JobState, Order, PodState, job_name
from reconciler.clusters.kubernetes.checks.check_records import Records, Run
from reconciler.clusters.kubernetes.checks.check_verdicts import NODE_GONE, Storage, Subject
from reconciler.clusters.kubernetes.checks.measurements import Measured, judged, limits_of, parsed
from reconciler.clusters.kubernetes.names import (
    CHECK,
    MANAGED_BY,
    MANAGER,
    MIG_BEFORE,
    MIG_CONFIG,
    MIG_STATE,
    SYSTEM_NAMESPACE,
)
from reconciler.clusters.kubernetes.nodes import mig
from reconciler.clusters.kubernetes.nodes.node_inventory import Node
from reconciler.clusters.kubernetes.nodes.node_marks import late, marks_of
from reconciler.clusters.kubernetes.nodes.node_writer import NodeWriter
from reconciler.model.cluster_port import Busy, CheckResult, Difference, Refused, Stage, Stamp
from schemas.documents.cluster import ClusterSpec
from schemas.errors import Fault

CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
DEFAULT_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
BEGUN = timedelta(seconds=1)
"""Results arrive at the next call at the earliest: the caller can handle other nodes meanwhile."""
POLL = timedelta(seconds=2)
LOG_BYTES = 16_384
CUT = "MigLayout"
Results = tuple[CheckResult, ...]


class Checks:
    """The checks of one cluster. Thread-safe for different nodes."""

    def __init__(
        self,
        api: Api,
        spec: ClusterSpec,
        writer: NodeWriter,
        namespace: str = SYSTEM_NAMESPACE,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        self._api, self._spec, self._writer, self._namespace = api, spec, writer, namespace
        ours = f"{MANAGED_BY}={MANAGER},{CHECK} in (pre,run,post)"
        self._jobs_path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
        self._pods_path = f"/api/v1/namespaces/{namespace}/pods"
        self._records = Records(api, namespace, wake)
        self._upgrades = driver_upgrades.DriverUpgrades(writer, self._records, spec.checks.timeout)
        self._jobs = Informer(api, self._jobs_path, check_jobs.read_job, ours, wake)
        self._pods = Informer(api, self._pods_path, check_jobs.read_check_pod, ours, wake)
        self._classes = Informer(api, CLASSES, _is_default, wake=wake)

    @property
    def informers(self) -> tuple[Informer[Any], ...]:
        return (self._records.informer, self._jobs, self._pods, self._classes)

    def start(self) -> None:
        for informer in self.informers:
            informer.start()

    def stop(self) -> None:
        for informer in self.informers:
            informer.stop()

    def run(
        self, subject: Subject | None, stage: Stage, stamp: Stamp, now: datetime
    ) -> Busy | Refused | Results:
        """The port's `check`; None for a node that the cluster does not have."""
        if subject is None:
            return NODE_GONE
        self._wait_synced()
        name = subject.node.name
        record = self._records.of(name)
        if (refusal := late(f"the record of checks of node {name}", record.stamp, stamp)) is not None:
            return refusal
        run = record.runs.get(stage)
        known = run is not None and run.counts(subject.lease.uid, now, self._longest)
        if run is not None and known and run.ended is not None and not self._is_due(run, stage, now):
            return run.results
        if (waits := driver_upgrades.waits(subject, stage, now)) is not None:
            # What the upgrade interrupts begins again.
            begun = self._begin(subject, stage, stamp, now) if known else waits
            return begun if isinstance(begun, Refused) else waits
        if run is None or not known or run.ended is not None:
            return self._begin(subject, stage, stamp, now)
        found = self._next(subject, stage, run, stamp, now)
        return self._ended(subject, stage, run, found, (stamp, now)) if isinstance(found, tuple) else found

    def left_over(self, nodes: Sequence[Node], now: datetime) -> tuple[Difference, ...]:
        """Leftovers on these nodes: Jobs of runs that ended, MIG layouts of leases that never began."""
        self._wait_synced()
        return (
            *(
                Difference("", f"Job {self._namespace}/{name}", "extra", "its checks are no longer needed")
                for name in self._idle_jobs(nodes, now)
            ),
            *(
                Difference(
                    "", f"Node {node.name}", "changed", f"label {MIG_CONFIG}, for a lease that never began"
                )
                for node in self._idly_cut(nodes, now)
            ),
            *self._upgrades.left_over(nodes, now),
        )

    def sweep(self, nodes: Sequence[Node], stamp: Stamp, now: datetime) -> None:
        """Removes what `left_over` lists."""
        self._wait_synced()
        for name in self._idle_jobs(nodes, now):
            self._delete(name)
        for node in self._idly_cut(nodes, now):
            mig.settle(self._writer, node, "", stamp)
        self._upgrades.sweep(nodes, stamp, now)

    def _idle_jobs(self, nodes: Sequence[Node], now: datetime) -> list[str]:
        names = {node.name for node in nodes}
        waited = {
            job_name(name, run.uid, stage, run.begun)
            for name in names
            for stage, run in self._records.of(name).runs.items()
            if run.ended is None and run.counts(run.uid, now, self._longest)
        }
        # Jobs on other nodes belong to another project; those on deleted nodes are deleted with them.
        known = (job for job in self._jobs.items().values() if job.node in names)
        return sorted(job.name for job in known if job.name not in waited)

    def _idly_cut(self, nodes: Sequence[Node], now: datetime) -> list[Node]:
        return [
            node
            for node in nodes
            if MIG_BEFORE in node.annotations
            and marks_of(node).lease is None
            and isinstance(mig.step(node, ""), mig.Change)
            and not self._upgrades.is_awaited(node.name, now)
        ]

    # --- one run ---

    def _begin(self, subject: Subject, stage: Stage, stamp: Stamp, now: datetime) -> Busy | Refused:
        if (refusal := self._upgrades.keep_away(subject, stage, stamp)) is not None:
            return refusal
        peer = latency_peers.next_of(subject.node.name, subject.peers) if stage == "run" else ""
        run = Run(subject.lease.uid, now, peer)
        old = self._records.of(subject.node.name).runs.get(stage)
        refusal = self._records.write(subject.node, stage, run, stamp)
        if refusal is not None:
            return refusal
        if old is not None and old.ended is None:
            # It holds GPUs that this run needs.
            self._delete(job_name(subject.node.name, old.uid, stage, old.begun))
        return Busy(now + BEGUN, f"{stage} checks of node {subject.node.name} begin")

    def _next(
        self, subject: Subject, stage: Stage, run: Run, stamp: Stamp, now: datetime
    ) -> Busy | Refused | Results:
        """The next step, or the results if none is left."""
        node, spec = subject.node, self._spec
        if not node.ready and node.labels.get(MIG_STATE) != "rebooting":
            return check_verdicts.silent(subject, stage)
        cut = self._cut(subject, stage, run, stamp, now)
        if isinstance(cut, Busy | Refused):
            return cut
        found = check_verdicts.direct(subject, stage, spec)
        found |= {result.name: result for result in cut}
        objects = check_verdicts.unmeasured(subject, stage, spec, Storage(self._classes.items()))
        measures = spec.checks.image is not None
        # What the objects show as broken needs no measuring.
        found |= {name: result for name, result in objects.items() if not (measures and result.passed)}
        bad = next((result.name for result in found.values() if not result.passed), None)
        names = check_verdicts.checks_of(subject, stage)
        left = [name for name in names if name not in found]
        if bad is not None:
            found = {name: check_verdicts.skipped(name, bad) for name in left} | found
        elif stage == "run" and not run.peer:
            found["Latency"] = latency_peers.ALONE
        elif left:
            measured = self._measured(subject, stage, run, stamp, now)
            if isinstance(measured, Busy):
                return measured
            found = {name: _together(found.get(name), measured.get(name)) for name in {**found, **measured}}
        return tuple(found[name] for name in (CUT, *names) if name in found)

    def _ended(
        self, subject: Subject, stage: Stage, run: Run, results: Results, by: tuple[Stamp, datetime]
    ) -> Refused | Results:
        stamp, now = by
        ended = Run(run.uid, run.begun, run.peer, now, results)
        refusal = self._records.write(subject.node, stage, ended, stamp)
        if refusal is not None:
            return refusal
        name = job_name(subject.node.name, run.uid, stage, run.begun)
        if self._job(name) is not None:
            self._delete(name)
        if stage == "pre" and not ended.passed and self._is_free(subject):
            mig.settle(self._writer, subject.node, "", stamp)
        self._upgrades.let_in(subject.node, ended, stage, now, stamp)
        return results

    # --- GPUs cut by MIG ---

    def _cut(
        self, subject: Subject, stage: Stage, run: Run, stamp: Stamp, now: datetime
    ) -> Busy | Refused | Results:
        """Before a start the lease's profile, after an end the previous one; nothing while the node serves."""
        if stage == "run" or not self._is_free(subject):
            return ()
        profile = subject.lease.mig if stage == "pre" else ""
        if not profile and MIG_BEFORE not in subject.node.annotations:
            return ()
        found = mig.settle(self._writer, subject.node, profile, stamp)
        if isinstance(found, Refused):
            return found
        if isinstance(found, mig.Ready):
            return (CheckResult(CUT, True, profile or "as before", "the MIG manager reports success"),)
        if isinstance(found, mig.Waiting) and now < run.begun + self._longest:
            return Busy(min(now + POLL, run.begun + self._longest), found.message)
        late_by = f" after {_minutes(self._longest)}" if isinstance(found, mig.Waiting) else ""
        return (CheckResult(CUT, False, subject.node.labels.get(MIG_STATE, ""), found.message + late_by),)

    def _is_free(self, subject: Subject) -> bool:
        return marks_of(subject.node).lease is None

    # --- what a Job measures ---

    def _measured(
        self, subject: Subject, stage: Stage, run: Run, stamp: Stamp, now: datetime
    ) -> Busy | dict[str, CheckResult]:
        name, deadline = job_name(subject.node.name, run.uid, stage, run.begun), run.begun + self._longest
        job = self._job(name)
        pod = next((p for p in self._pods.items().values() if p.job == name), None)
        over = now >= deadline or (job is not None and job.failed)
        if not over and (pod is None or not pod.ended):
            if job is None or pod is None or pod.trouble:
                self._ensure(self._order(subject, stage, run), stamp)
            trouble = f": {pod.trouble}" if pod is not None and pod.trouble else ""
            return Busy(min(now + POLL, deadline), f"{stage} checks of node {subject.node.name} run{trouble}")
        said = self._said(pod) if pod is not None and pod.ended else {}
        return self._judged(subject, stage, run, said, _why_silent(pod, job, self._longest))

    def _judged(
        self, subject: Subject, stage: Stage, run: Run, said: Mapping[str, Measured], silent: str
    ) -> dict[str, CheckResult]:
        limits = limits_of(self._spec.checks, subject.shape)
        names = [
            name for name in check_verdicts.checks_of(subject, stage) if name not in check_verdicts.DIRECT
        ]
        found = {name: judged(name, said.get(name), limits, silent) for name in names}
        if stage == "run":
            return {name: latency_peers.told(result, run.peer) for name, result in found.items()}
        more = [name for name in ("NodeHealth",) if name in said and stage == "pre"]
        return found | {name: judged(name, said[name], limits, silent) for name in more}

    def _said(self, pod: PodState) -> Mapping[str, Measured]:
        """From the termination message; from the log, which costs another call, only if that is empty."""
        found = parsed(pod.said)
        if found:
            return found
        try:
            path = f"{self._pods_path}/{pod.name}/log"
            return parsed(
                self._api.text(path, container=check_jobs.CONTAINER, tailLines=200, limitBytes=LOG_BYTES)
            )
        except Fault as fault:
            if isinstance(fault, Rejected) and fault.status == 403:
                raise  # we lack a permission
            # The node's kubelet is called through the API server, and may be the one that does not answer.
            return {}

    def _order(self, subject: Subject, stage: Stage, run: Run) -> Order:
        checks, names = self._spec.checks, check_verdicts.checks_of(subject, stage)
        assert checks.image is not None
        volume = Storage(self._classes.items()).usable(checks.storage_class)
        return Order(
            subject=subject,
            stage=stage,
            begun=run.begun,
            checks=tuple(name for name in names if name not in check_verdicts.DIRECT or name == "NodeHealth"),
            image=checks.image,
            timeout=checks.timeout,
            tolerate=checks.tolerate,
            volume=volume if "PersistentVolume" in names else None,
            peer=latency_peers.target(self._api, run.peer) if run.peer else "",
        )

    def _ensure(self, order: Order, stamp: Stamp) -> None:
        """Ensures the Job and its volume; a repeat finds them by name."""
        job = self._job(order.name)
        if job is None:
            job = self._made(order, stamp)
        if order.volume is not None:
            _create(self._api, self._claims_path, check_jobs.claim(order, self._namespace, job.uid))

    def _made(self, order: Order, stamp: Stamp) -> JobState:
        made = _create(self._api, self._jobs_path, check_jobs.job(order, self._namespace, stamp))
        found = made or self._api.get(f"{self._jobs_path}/{order.name}")
        self._jobs.learn(found)
        return check_jobs.read_job(found)

    @property
    def _claims_path(self) -> str:
        return f"/api/v1/namespaces/{self._namespace}/persistentvolumeclaims"

    def _job(self, name: str) -> JobState | None:
        return self._jobs.items().get(f"{self._namespace}/{name}")

    def _delete(self, name: str) -> None:
        self._api.delete(f"{self._jobs_path}/{name}")

    # --- time ---

    @property
    def _longest(self) -> timedelta:
        return self._spec.checks.timeout

    def _is_due(self, run: Run, stage: Stage, now: datetime) -> bool:
        """True if a measurement between running nodes is due again."""
        every = self._spec.checks.latency_interval
        return stage == "run" and run.ended is not None and every is not None and now >= run.begun + every

    def _wait_synced(self) -> None:
        for informer in self.informers:
            informer.wait_synced()


def _together(of_objects: CheckResult | None, of_image: CheckResult | None) -> CheckResult:
    """Both must pass; the image's result has more detail."""
    found = [result for result in (of_image, of_objects) if result is not None]
    return next((result for result in found if not result.passed), found[0])


def _why_silent(pod: PodState | None, job: JobState | None, longest: timedelta) -> str:
    """Why a check has no result, as a sentence."""
    if pod is not None and pod.ended:
        how = f" ({pod.trouble})" if pod.trouble else ""
        return f"the checks' image reported nothing for it{how}"
    after = f"no result after {_minutes(longest)}"
    if pod is not None:
        return f"{after}: pod {pod.name} is {pod.phase}" + (f", {pod.trouble}" if pod.trouble else "")
    if job is not None and job.failed:
        return f"Job {job.name} failed: {job.failed}"
    return f"{after}: its Job created no pod; see the Job's events"


def _minutes(length: timedelta) -> str:
    return f"{length.total_seconds() / 60:g} min"


def _create(api: Api, path: str, body: Json) -> Json | None:
    """None if one of that name exists."""
    try:
        return api.create(path, body)
    except Rejected as no:
        if no.status != 409:
            raise
        return None


def _is_default(item: Json) -> bool:
    annotations = item["metadata"].get("annotations") or {}
    return any(annotations.get(name) == "true" for name in DEFAULT_CLASS)
