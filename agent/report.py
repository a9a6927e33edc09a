"""The agent's report on a Git branch of its own, written on change only.

The branch `egs/agents/<cluster>/<agent>` has one writer and one file, so a foreign commit found by a push is an alarm,
not a race. The last report is read back at the start: faults from before a restart still hold.

An agent with a key signs: a second file holds the signature of the report's bytes (SSHSIG, namespace egs-health), and
it trusts only reports on its branch that it has signed itself. Foreign changes of the branch are overwritten as soon
as they are seen.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pydantic import ValidationError

from agent.judge import GpuVerdict, Verdict
from reconciler.model.evidence import GIT, HEALTH
from reconciler.store.store_port import Draft, Outcome, Person, Store
from schemas.errors import Fault
from schemas.reading.reader import parse_to_json
from schemas.reading.strict_yaml import Refused
from schemas.reading.yaml_text import dump
from schemas.status.gpu_faults import came_back, fault_kind
from schemas.status.node_status import AgentReport, GpuReport, NodeMetadata

if TYPE_CHECKING:
    from reconciler.trust.sshsig import PrivateKey

log = logging.getLogger(__name__)

PATH = "report.yaml"
SIGNATURE = f"{PATH}.sig"
MESSAGE_LINES = 4
"""Most GPUs named in a message; the report lists the rest."""
CAME_BACK = "; it came back within a day, so replace the card"


@dataclass(frozen=True, slots=True)
class Identity:
    """Owner of a branch. `writer` is unique to this process, `boot` to this boot of the machine."""

    cluster: str
    node: str
    agent: str
    writer: str
    boot: str = ""  # empty: unknown, then a restart never counts as a reboot

    @property
    def branch(self) -> str:
        """The branch that only this agent writes."""
        return f"egs/agents/{self.cluster}/{self.agent}"


@dataclass(frozen=True, slots=True)
class Previous:
    """The last report of an earlier process of this agent."""

    report: AgentReport
    rebooted: bool  # the machine was rebooted since


def report_of(
    verdict: Verdict, who: Identity, at: datetime, released_at: datetime | None = None
) -> AgentReport:
    """The verdict as a document; its texts contain no changing figures, so that only real changes are written."""
    return AgentReport(
        metadata=NodeMetadata(name=who.agent),
        cluster=who.cluster,
        node=who.node,
        at=at.replace(microsecond=0),
        healthy=verdict.healthy,
        reason=verdict.reason,
        action=verdict.action,
        message=None if verdict.healthy else "\n".join(_lines(verdict)),
        gpus=tuple(_gpu_report(g) for g in verdict.gpus),
        faults=tuple(at.replace(microsecond=0) for at in verdict.faults),
        idle_since=None if verdict.idle_since is None else verdict.idle_since.replace(microsecond=0),
        released_at=None if released_at is None else released_at.replace(microsecond=0),
    )


def _gpu_report(g: GpuVerdict) -> GpuReport:
    return GpuReport(
        uuid=g.gpu.uuid,
        index=g.gpu.index,
        product=g.gpu.product,
        memory_mib=g.gpu.memory_mib,
        healthy=not g.reasons,
        reasons=g.reasons,
        watched=g.watched,
        action=g.action,
        past=g.past,
        serial=g.gpu.serial,
        board_part=g.gpu.board_part,
        vbios=g.gpu.vbios,
        driver=g.gpu.driver,
        mig_enabled=g.gpu.mig_enabled,
        mig_devices=g.gpu.mig_devices,
        links=g.gpu.links,
        links_up=g.gpu.links_up,
    )


def _lines(verdict: Verdict) -> Iterator[str]:
    bad = [g for g in verdict.gpus if g.reasons]
    for g in bad[:MESSAGE_LINES]:
        text = f"GPU {g.gpu.index} ({g.gpu.uuid}) {sentence(g.reasons[0])}"
        yield text + CAME_BACK if came_back(g.reasons, g.action) else text
    if len(bad) > MESSAGE_LINES:
        yield f"and {len(bad) - MESSAGE_LINES} more GPUs"
    yield from (sentence(reason) for reason in verdict.node_reasons)


def sentence(reason: str) -> str:
    """The meaning of a reason and what to do; the GPU is the subject."""
    kind = fault_kind(reason)
    return reason if kind is None else kind.sentence


def tells_news(new: AgentReport, old: AgentReport | None) -> bool:
    """Whether the report must be written; an old fault leaving the one-day window does not count."""
    if old is None:
        return True
    same = new.edited(at=old.at, faults=old.faults) == old
    return not same or max(new.faults, default=None) not in (None, max(old.faults, default=None))


class Reporter:
    """Reads and writes the agent's own branch."""

    def __init__(self, store: Store, who: Identity, key: PrivateKey | None = None) -> None:
        """`store` signs commits with the same key, if there is one."""
        self._store = store
        self._who = who
        self._key = key
        self._tip: str | None = None
        self._last: AgentReport | None = None
        self._newest: datetime | None = None  # time of the last report known to be on the branch
        self._settled = False  # True: `_tip` and `_last` match the remote

    def previous(self) -> Previous | None:
        """Read the branch; None if there is no readable report."""
        self._tip = self._store.fetch([self._who.branch]).get(self._who.branch)
        self._last = None if self._tip is None else self._read(self._tip)
        self._settled = True
        if self._last is not None and self._newest is not None and self._last.at < self._newest:
            self._last = None  # the branch was set back: write the report again
        if self._tip is None or self._last is None:
            return None
        self._newest = self._last.at
        boot = self._boot(self._tip)
        return Previous(self._last, rebooted=bool(boot and self._who.boot) and boot != self._who.boot)

    def _boot(self, tip: str) -> str:
        """The boot in which the tip was written; empty: unknown, or not written by us."""
        commit = self._store.commit(tip)
        if self._key is not None and self._key.sign(GIT, commit.payload) != commit.signature:
            return ""
        return commit.trailers.get("Boot", "")

    def publish(self, report: AgentReport) -> Outcome | None:
        """Push the report if it has news; None if it has not.

        After any outcome but `COMMITTED`, and after a fetch that shows another tip, the next call first reads the
        branch again. Reports have increasing times, whatever the clock does.
        """
        if not self._settled or self._store.tips().get(self._who.branch) != self._tip:
            self.previous()
        if not tells_news(report, self._last):
            return None
        if self._newest is not None and report.at <= self._newest:
            report = report.edited(at=self._newest + timedelta(seconds=1))
        oid = self._store.write(self._draft(report))
        outcome = self._store.push(self._who.branch, oid, self._tip)
        if outcome is Outcome.COMMITTED:
            self._tip, self._last, self._newest = oid, report, report.at
            log.info(
                "report written branch=%s healthy=%s reason=%s",
                self._who.branch,
                report.healthy,
                report.reason,
            )
            return outcome
        self._settled = False
        self._complain(outcome)
        return outcome

    def _complain(self, outcome: Outcome) -> None:
        if outcome is Outcome.CONFLICT:
            log.error(
                "another process wrote the agent's branch branch=%s act=find-the-second-agent",
                self._who.branch,
            )
        else:
            log.warning("report not written branch=%s outcome=%s", self._who.branch, outcome.value)

    def _draft(self, report: AgentReport) -> Draft:
        state = "healthy" if report.healthy else f"unhealthy: {report.reason}"
        trailers = f"Writer: {self._who.writer}\n" + (f"Boot: {self._who.boot}\n" if self._who.boot else "")
        text = as_text(report)
        signed = {} if self._key is None else {SIGNATURE: self._key.sign(HEALTH, text).encode("ascii")}
        return Draft(
            changes={PATH: text, **signed},
            message=f"{report.node} is {state}\n\n{trailers}",
            author=Person(f"egs-agent {self._who.agent}", "egs-agent@egs.invalid"),
            at=report.at,
            base=self._tip,
            parent=self._tip,
        )

    def _read(self, tip: str) -> AgentReport | None:
        data = self._store.read_path(tip, PATH)
        if data is not None and not self._is_own(tip, data):
            log.error(
                "last report is not signed by this agent branch=%s act=protect-the-branch", self._who.branch
            )
            return None
        try:
            return None if data is None else from_text(data)
        except Fault as error:
            log.warning("last report not readable branch=%s error=%s", self._who.branch, error)
            return None

    def _is_own(self, tip: str, data: bytes) -> bool:
        """Whether it has our signature, which is deterministic."""
        if self._key is None:
            return True
        return self._store.read_path(tip, SIGNATURE) == self._key.sign(HEALTH, data).encode("ascii")


def as_text(report: AgentReport) -> bytes:
    return dump(report.model_dump(mode="json", by_alias=True, exclude_none=True)).encode()


def from_text(data: bytes) -> AgentReport:
    """The inverse of `as_text`; raises `Fault` (`ReportUnreadable`)."""
    try:
        return AgentReport.model_validate_json(parse_to_json(data), extra="ignore")  # of a newer agent
    except (Refused, ValidationError) as error:
        raise Fault(f"{PATH} is not an AgentReport of this release", "ReportUnreadable") from error
