"""What an agent writes, when, and to whom it listens; on an in-memory remote."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from agent.judge import Gpu, GpuVerdict, Verdict
from agent.report import PATH, SIGNATURE, Identity, Reporter, as_text, from_text, report_of, tells_news
from reconciler.model.evidence import HEALTH
from reconciler.store.memory_store import MemoryStore
from reconciler.store.store_port import Draft, Outcome, Person
from reconciler.trust.machines import signer, signing
from schemas.errors import Fault
from tests.support.machinekeys import key
from tests.support.memory_remote import Fate, MemoryRemote

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
HOUR = timedelta(hours=1)
WHO = Identity("east", "h100-1", "h100-1", "h100-1@east/1", boot="boot-1")
BRANCH = "egs/agents/east/h100-1"


def verdict(*reasons: str, gpus: int = 2, node: tuple[str, ...] = (), faults=()) -> Verdict:
    """The first GPU has the reasons, the others have none."""
    return Verdict(
        tuple(
            GpuVerdict(Gpu(f"GPU-{i}", i, "H100-80GB", 81920), reasons if i == 0 else ()) for i in range(gpus)
        ),
        node,
        faults,
        False,
    )


def report(*reasons: str, at: datetime = NOW, **more):
    return report_of(verdict(*reasons, **more), WHO, at)


@pytest.fixture
def remote():
    return MemoryRemote()


def commits(remote: MemoryRemote) -> list[str]:
    """Subjects on the agent's branch, oldest first."""
    store = MemoryStore(remote)
    tip = store.fetch([BRANCH]).get(BRANCH)
    log = store.log(tip, 100) if tip else []
    return [c.message.splitlines()[0] for c in reversed(log)]


def foreign_commit(remote: MemoryRemote, content: bytes) -> None:
    """Somebody else writes the agent's branch."""
    store = MemoryStore(remote)
    tip = store.fetch([BRANCH]).get(BRANCH)
    draft = Draft({PATH: content}, "not ours", Person("x", "x@example.com"), NOW, base=tip, parent=tip)
    assert store.push(BRANCH, store.write(draft), tip) is Outcome.COMMITTED


def test_only_a_change_is_written(remote):
    """G4 without a heartbeat: liveness comes from the cluster."""
    reporter = Reporter(MemoryStore(remote), WHO)
    assert reporter.publish(report()) is Outcome.COMMITTED
    assert reporter.publish(report(at=NOW + HOUR)) is None
    assert reporter.publish(report("Xid79", at=NOW + HOUR, faults=(NOW + HOUR,))) is Outcome.COMMITTED
    assert commits(remote) == ["h100-1 is healthy", "h100-1 is unhealthy: Xid79"]


def test_a_report_names_what_is_wrong_and_what_to_do(remote):
    """H14, H15: a person and the reconciler read the same file."""
    Reporter(MemoryStore(remote), WHO).publish(report("GpuLost", "Xid79", faults=(NOW,)))
    store = MemoryStore(remote)
    tip = store.fetch([BRANCH])[BRANCH]
    data = store.read_path(tip, PATH) or b""
    assert from_text(data) == report("GpuLost", "Xid79", faults=(NOW,))
    assert b"\nreason: GpuLost\n" in data
    assert b"GPU 0 (GPU-0) fell off the bus; the machine needs service" in data


def test_commits_say_which_life_of_which_agent_wrote_them(remote):
    Reporter(MemoryStore(remote), WHO).publish(report())
    store = MemoryStore(remote)
    trailers = store.commit(store.fetch([BRANCH])[BRANCH]).trailers
    assert (trailers["Writer"], trailers["Boot"]) == ("h100-1@east/1", "boot-1")


@pytest.mark.parametrize(
    ("old", "new", "news"),
    [
        pytest.param(report(), report(at=NOW + HOUR), False, id="time passes"),
        pytest.param(report(faults=(NOW,)), report(), False, id="an old fault leaves the day's window"),
        pytest.param(
            report(faults=(NOW,)), report(faults=(NOW, NOW + HOUR)), True, id="a fault came and went"
        ),
        pytest.param(report(), report("TooHot"), True, id="a reason more"),
        pytest.param(report("TooHot"), report("TooHot", "Xid48"), True, id="another reason beside it"),
        pytest.param(report(), report(gpus=3), True, id="a GPU more"),
        pytest.param(None, report(), True, id="the first report"),
    ],
)
def test_what_is_news(old, new, news):
    assert tells_news(new, old) is news


@pytest.mark.parametrize(("boot", "rebooted"), [("boot-1", False), ("boot-2", True), ("", False)])
def test_a_restart_reads_the_last_report_back(remote, boot, rebooted):
    Reporter(MemoryStore(remote), WHO).publish(report("Xid79", faults=(NOW,)))
    again = Reporter(MemoryStore(remote), replace(WHO, boot=boot)).previous()
    assert again is not None
    assert (again.report, again.rebooted) == (report("Xid79", faults=(NOW,)), rebooted)


def test_a_restart_with_nothing_new_writes_nothing(remote):
    """`at`, the instant since which it is so, survives."""
    Reporter(MemoryStore(remote), WHO).publish(report())
    assert Reporter(MemoryStore(remote), WHO).publish(report(at=NOW + HOUR)) is None
    assert len(commits(remote)) == 1


def test_another_writer_is_an_alarm_and_no_end(remote, caplog):
    reporter = Reporter(MemoryStore(remote), WHO)
    reporter.publish(report())
    foreign_commit(remote, as_text(report("TooHot")))
    assert reporter.publish(report("Xid79")) is Outcome.CONFLICT
    assert "another process wrote the agent's branch" in caplog.text
    assert reporter.publish(report("Xid79")) is Outcome.COMMITTED
    assert commits(remote) == ["h100-1 is healthy", "not ours", "h100-1 is unhealthy: Xid79"]


@pytest.mark.parametrize(
    ("when", "fate", "attempts"),
    [
        pytest.param("after", Fate.HIDE, [Outcome.UNKNOWN, None], id="it arrived and nobody heard of it"),
        pytest.param("before", Fate.LOSE, [Outcome.UNKNOWN, Outcome.COMMITTED], id="it never arrived"),
        pytest.param("before", Fate.REFUSE, [Outcome.REFUSED, Outcome.COMMITTED], id="the server said no"),
    ],
)
def test_a_push_of_unknown_fate_is_settled_by_reading(remote, when, fate, attempts):
    """Written once, whatever became of the answer."""
    reporter = Reporter(MemoryStore(remote), WHO)
    remote.hook = lambda op: fate if (op.kind, op.when) == ("push", when) else Fate.PASS
    first = reporter.publish(report())
    remote.hook = lambda op: Fate.PASS
    assert [first, reporter.publish(report())] == attempts
    assert commits(remote) == ["h100-1 is healthy"]


def test_an_unreadable_last_report_is_replaced(remote, caplog):
    foreign_commit(remote, b"kind: [")
    reporter = Reporter(MemoryStore(remote), WHO)
    assert reporter.previous() is None
    assert "last report not readable" in caplog.text
    assert reporter.publish(report()) is Outcome.COMMITTED


def test_text_and_report_are_the_same_thing():
    for each in (report(), report("Xid79", node=("GpuCountLow",), faults=(NOW,))):
        assert from_text(as_text(each)) == each


def test_a_text_that_is_no_report_is_a_fault():
    with pytest.raises(Fault) as caught:
        from_text(b"kind: Slice\n")
    assert caught.value.reason == "ReportUnreadable"


def test_a_message_stays_short_when_all_gpus_fail():
    bad = tuple(GpuVerdict(Gpu(f"GPU-{i}", i, "H100", 1), ("GpuLost",)) for i in range(8))
    text = report_of(Verdict(bad, ("GpuCountLow",), (), False), WHO, NOW).message
    assert text is not None
    assert text.splitlines()[4:] == [
        "and 4 more GPUs",
        "fewer GPUs answer than the cluster's manifest says",
    ]


# -- with a key ------------------------------------------------------------------------------------------------


OWN = key("h100-1")


def signing_reporter(remote: MemoryRemote, who: Identity = WHO) -> Reporter:
    return Reporter(MemoryStore(remote, signing(OWN)), who, OWN)


def signed_report(remote: MemoryRemote) -> tuple[bytes, str]:
    """The report on the branch, and the signature beside it."""
    store = MemoryStore(remote)
    tip = store.fetch([BRANCH])[BRANCH]
    data, signature = (store.read_path(tip, path) for path in (PATH, SIGNATURE))
    return data or b"", (signature or b"").decode()


def test_an_agent_with_a_key_signs_the_bytes_of_its_report(remote):
    signing_reporter(remote).publish(report("Xid79"))
    data, signature = signed_report(remote)
    assert signer(HEALTH, data, signature) == OWN.public
    assert from_text(data) == report("Xid79")


@pytest.mark.parametrize(
    "forge",
    [
        pytest.param(lambda remote: foreign_commit(remote, as_text(report())), id="unsigned"),
        pytest.param(
            lambda remote: Reporter(MemoryStore(remote), WHO, key("eve")).publish(report(at=NOW + HOUR)),
            id="signed by somebody else",
        ),
        pytest.param(lambda remote: remote.delete(BRANCH), id="removed"),
    ],
)
def test_what_somebody_else_made_of_the_branch_is_no_memory_and_is_written_over(remote, forge):
    """A forged good report neither heals the GPU nor stays where it is."""
    reporter = signing_reporter(remote)
    reporter.publish(report("Xid79", faults=(NOW,)))
    forge(remote)
    assert signing_reporter(remote).previous() is None
    reporter._store.fetch([BRANCH])
    assert reporter.publish(report("Xid79", faults=(NOW,), at=NOW + HOUR)) is Outcome.COMMITTED
    data, signature = signed_report(remote)
    assert signer(HEALTH, data, signature) == OWN.public
    assert from_text(data).reason == "Xid79"


def test_a_branch_that_was_set_back_is_told_anew(remote):
    """The old report is signed and says the same; only what comes after the newest one counts for readers."""
    reporter = signing_reporter(remote)
    reporter.publish(report())
    old = remote.tips[BRANCH]
    reporter.publish(report("TooHot", at=NOW + HOUR))
    remote.tips[BRANCH] = old
    reporter._store.fetch([BRANCH])
    assert reporter.publish(report(at=NOW + 2 * HOUR)) is Outcome.COMMITTED
    assert from_text(signed_report(remote)[0]).at == NOW + 2 * HOUR


def test_reports_are_dated_in_their_order_whatever_the_clock_does(remote):
    """A clock that was set back must not make a new fault look like an old report."""
    reporter = signing_reporter(remote)
    reporter.publish(report())
    reporter.publish(report("TooHot", at=NOW - HOUR))
    assert from_text(signed_report(remote)[0]).at == NOW + timedelta(seconds=1)


@pytest.mark.parametrize(("by", "rebooted"), [("h100-1", True), ("eve", False)])
def test_only_an_own_commit_tells_of_a_reboot(remote, by, rebooted):
    """The report is ours either way: somebody may put it into a commit that names another life of the machine."""
    signing_reporter(remote).publish(report("Xid79"))
    store = MemoryStore(remote, signing(key(by)))
    tip = store.fetch([BRANCH])[BRANCH]
    draft = Draft({}, "again\n\nWriter: w\nBoot: boot-0\n", Person("x", "x@x.com"), NOW, base=tip, parent=tip)
    assert store.push(BRANCH, store.write(draft), tip) is Outcome.COMMITTED
    previous = signing_reporter(remote).previous()
    assert previous is not None
    assert previous.rebooted is rebooted
