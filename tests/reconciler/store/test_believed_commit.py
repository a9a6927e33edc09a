"""A branch whose writers sign: what strangers put on it, set back or remove changes nothing of what it says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.store.believed_commit import SEARCHED, Belief
from reconciler.store.branch_writer import BranchWriter
from reconciler.store.git.git_reader import MAX_OBJECT
from reconciler.store.memory_store import MemoryStore
from reconciler.store.store_port import Draft, Outcome, Person
from reconciler.store.trailers import Stamp, message, parse_stamp
from reconciler.store.write_decision import WriterSettings
from reconciler.store.write_results import Written
from reconciler.trust.machines import Machines, signing
from tests.support import machinekeys as keys
from tests.support import repos
from tests.support.memory_remote import MemoryRemote

NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
BRANCH = "egs/status"
ROBOT = Person("egs", "egs@example.com")
INTENT = "1" * 40
OURS = signing(keys.key("controller"))
BELIEVES = keys.machines(keys.line("controller")).controllers()


def writer(store, name="w-1", believes=BELIEVES) -> BranchWriter:
    settings = WriterSettings(pushes_per_minute=None)
    return BranchWriter(store, BRANCH, name, ROBOT, settings, believes=believes)


def leading(store, name="w-1") -> BranchWriter:
    made = writer(store, name)
    assert made.take_over(NOW).landed
    return made


def contents(store) -> dict[str, bytes]:
    tip = store.fetch([BRANCH])[BRANCH]
    return {entry.path: store.read([entry.oid])[entry.oid] for entry in store.diff(None, tip)}


def put(store, text, *, sign=None, stamp=None, root=False, changes=None):
    """Somebody with the right to push puts a commit on the branch, or in its place."""
    tip = store.fetch([BRANCH]).get(BRANCH)
    store._sign = sign
    said = text if stamp is None else message(text, stamp)
    parent = None if root else tip
    draft = Draft(changes or {"a": b"forged"}, said, Person("Eve", "eve@example.com"), NOW, parent, parent)
    oid = store.write(draft)
    assert store.push(BRANCH, oid, tip) is Outcome.COMMITTED
    return oid


def put_huge(store):
    """A commit with a message of more bytes than any reader takes."""
    oid = put(store, "x" * (MAX_OBJECT[b"commit"] + 1))
    if isinstance(store, MemoryStore):
        store._remote.too_large.add(oid)
    return oid


HIGHER = Stamp("w-1", 99, 1, INTENT)
STRANGER = signing(keys.key("eve"))
ATTACKS = {
    "an unsigned commit": lambda store: put(store, "by hand"),
    "an unsigned commit with our trailers and a higher term": lambda store: put(
        store, "Forged", stamp=HIGHER
    ),
    "a commit signed by somebody else's key": lambda store: put(store, "Forged", stamp=HIGHER, sign=STRANGER),
    "a commit with the signature of another one of ours": lambda store: put(
        store, "Forged", stamp=HIGHER, sign=lambda _: OURS(b"another")
    ),
    "a commit signed by our key for another purpose": lambda store: put(
        store, "Forged", stamp=HIGHER, sign=lambda data: keys.key("controller").sign("egs-health", data)
    ),
    "a signature that is none": lambda store: put(store, "Forged", stamp=HIGHER, sign=lambda _: "-----\nx\n"),
    "a commit of ours without a stamp": lambda store: put(store, "Forged", sign=OURS),
    "a history of their own": lambda store: put(store, "Forged", stamp=HIGHER, sign=STRANGER, root=True),
    "everything deleted": lambda store: put(store, "Gone", changes={"a": None, "b": None}),
    "a commit that is too large to be read": lambda store: put_huge(store),
    "the same, and one that looks honest on top": lambda store: [
        put_huge(store),
        put(store, "Forged", stamp=HIGHER),
    ],
}


@pytest.fixture(params=["memory", "git"])
def stores(request, tmp_path):
    """Opens stores on one remote: of controllers (signing), and of strangers; `again` is a restart on its mirror."""
    if request.param == "memory":
        remote = MemoryRemote()
        return lambda sign=None, mirror=None: MemoryStore(remote, sign)
    remote, open_store = request.getfixturevalue("remote"), request.getfixturevalue("open_store")

    def opened(sign=None, mirror=None):
        store = open_store(mirror=None if mirror is None else tmp_path / mirror)
        store._sign = sign
        return store

    assert remote.exists()
    return opened


@pytest.mark.parametrize("attack", [pytest.param(attack, id=name) for name, attack in ATTACKS.items()])
def test_a_push_by_a_stranger_is_an_alarm_and_is_undone(stores, attack):
    ours = stores(OURS)
    made = leading(ours)
    assert made.write({"a": b"1", "b": b"2"}, INTENT, NOW, "First").landed
    attack(stores())
    assert made.write({"a": b"3"}, INTENT, NOW, "Second") == Written(Outcome.CONFLICT)
    assert not made.superseded
    assert len(made.alarms) == 1
    assert made.take_over(NOW).landed
    assert (made.term, contents(ours)) == (2, {"a": b"1", "b": b"2"})
    assert made.write({"a": b"3"}, INTENT, NOW, "Second").landed
    assert made.alarms == ()


@pytest.mark.parametrize("attack", [pytest.param(attack, id=name) for name, attack in ATTACKS.items()])
def test_a_push_by_a_stranger_while_nobody_is_there_is_undone_by_whoever_comes(stores, attack):
    leading(stores(OURS)).write({"a": b"1", "b": b"2"}, INTENT, NOW, "First")
    attack(stores())
    ours = stores(OURS)
    new = writer(ours, "w-2")
    if ours.parent(ours.fetch([BRANCH])[BRANCH]) is None:
        assert new.belief.newest(ours.tips()[BRANCH]) is None, "nothing is left, and nothing is made up"
        return
    assert new.take_over(NOW).landed
    assert (new.term, contents(ours)) == (2, {"a": b"1", "b": b"2"})
    assert len(new.alarms) == 1


@pytest.mark.parametrize("attack", [pytest.param(attack, id=name) for name, attack in ATTACKS.items()])
def test_whoever_follows_is_not_led_astray(stores, attack):
    old = leading(stores(OURS))
    new = leading(stores(OURS), "w-2")
    new.write({"a": b"1"}, INTENT, NOW, "First")
    attack(stores())
    assert old.write({"a": b"2"}, INTENT, NOW, "Late") == Written(Outcome.CONFLICT)
    assert old.alarms != () or old.superseded
    if old.superseded:
        assert old._by.writer == "w-2"


def rolled(stores):
    """A leader that wrote three times, and the oid after the first."""
    ours = stores(OURS)
    made = leading(ours)
    made.write({"a": b"1"}, INTENT, NOW, "First")
    first = made.tip
    made.write({"a": b"2", "b": b"x"}, INTENT, NOW, "Second")
    made.write({"b": None}, INTENT, NOW, "Third")
    return ours, made, first


def set_back(stores, oid):
    other = stores()
    tip = other.fetch([BRANCH])[BRANCH]
    assert other.push(BRANCH, oid, tip) is Outcome.COMMITTED


def test_a_branch_that_is_set_back_to_an_older_commit_of_ours_goes_on_where_it_was(stores):
    ours, made, first = rolled(stores)
    set_back(stores, first)
    assert made.write({"a": b"3"}, INTENT, NOW, "Fourth") == Written(Outcome.CONFLICT)
    assert made.take_over(NOW).landed
    assert contents(ours) == {"a": b"2"}
    assert any("reset to" in alarm or "foreign" in alarm for alarm in made.alarms)


def test_a_branch_that_is_removed_goes_on_where_it_was(stores, request):
    ours, made, _ = rolled(stores)
    if isinstance(ours, MemoryStore):
        ours._remote.delete(BRANCH)
    else:
        repos.git(request.getfixturevalue("remote"), "update-ref", "-d", f"refs/heads/{BRANCH}")
    assert made.write({"a": b"3"}, INTENT, NOW, "Fourth") == Written(Outcome.CONFLICT)
    assert made.take_over(NOW).landed
    assert contents(ours) == {"a": b"2"}
    assert any("gone" in alarm for alarm in made.alarms)


@pytest.mark.parametrize("how", ["set back", "removed", "replaced"])
def test_a_restart_on_its_mirror_remembers(remote, open_store, tmp_path, how):
    mirror = tmp_path / "mirror-of-ours"
    ours = open_store(mirror=mirror)
    ours._sign = OURS
    made = leading(ours)
    made.write({"a": b"1"}, INTENT, NOW, "First")
    first = made.tip
    made.write({"a": b"2"}, INTENT, NOW, "Second")
    ours.close()
    if how == "set back":
        repos.git(remote, "update-ref", f"refs/heads/{BRANCH}", first)
    elif how == "removed":
        repos.git(remote, "update-ref", "-d", f"refs/heads/{BRANCH}")
    else:
        put(open_store(), "Forged", stamp=HIGHER, root=True)
    again = open_store(mirror=mirror)
    again._sign = OURS
    new = writer(again, "w-2")
    assert new.take_over(NOW).landed
    assert (new.term, contents(again)) == (2, {"a": b"2"})
    assert len(new.alarms) == 1


def test_a_revoked_controller_s_commits_are_a_stranger_s(stores):
    leading(stores(OURS)).write({"a": b"1"}, INTENT, NOW, "First")
    lines = (keys.line("controller"), keys.line("controller", "next"))
    believes = keys.machines(*lines, revoked=("controller",)).controllers()
    ours = stores(signing(keys.key("next")))
    new = BranchWriter(ours, BRANCH, "w-2", ROBOT, believes=believes)
    assert new.belief.newest(ours.fetch([BRANCH])[BRANCH]) is None


def test_a_key_goes_on_where_another_one_ended(stores):
    leading(stores(OURS)).write({"a": b"1"}, INTENT, NOW, "First")
    believes = keys.machines(keys.line("controller"), keys.line("controller", "next")).controllers()
    ours = stores(signing(keys.key("next")))
    new = BranchWriter(ours, BRANCH, "w-2", ROBOT, believes=believes)
    assert new.take_over(NOW).landed
    assert (new.term, contents(ours), new.alarms) == (2, {"a": b"1"}, ())


def test_what_a_person_adopts_counts_though_nobody_signed_it():
    remote = MemoryRemote()
    put(MemoryStore(remote), "Old", stamp=Stamp("w-0", 7, 1, INTENT))
    ours = MemoryStore(remote, OURS)
    made = writer(ours)
    made.belief.adopt(ours.fetch([BRANCH])[BRANCH])
    assert made.take_over(NOW).landed
    assert (made.term, contents(ours), made.alarms) == (8, {"a": b"forged"}, ())


def test_to_adopt_changes_nothing_where_something_is_signed():
    remote = MemoryRemote()
    leading(MemoryStore(remote, OURS)).write({"a": b"1"}, INTENT, NOW, "First")
    put(MemoryStore(remote), "Forged", stamp=HIGHER)
    ours = MemoryStore(remote, OURS)
    made = writer(ours, "w-2")
    made.belief.adopt(ours.fetch([BRANCH])[BRANCH])
    assert made.take_over(NOW).landed
    assert (made.term, contents(ours)) == (2, {"a": b"1"})


def test_a_flood_of_forgeries_is_searched_so_far_and_no_further():
    remote = MemoryRemote()
    leading(MemoryStore(remote, OURS)).write({"a": b"1"}, INTENT, NOW, "First")
    eve = MemoryStore(remote)
    for number in range(SEARCHED):
        put(eve, f"Forged {number}", changes={"a": b"%d" % number})
    ours = MemoryStore(remote, OURS)
    assert writer(ours, "w-2").belief.newest(ours.fetch([BRANCH])[BRANCH]) is None


@pytest.mark.parametrize("restarted", [False, True], ids=["while it runs", "while it restarts"])
def test_where_nobody_signs_a_tip_that_cannot_be_read_is_a_stranger_s_all_the_same(stores, restarted):
    ours = stores()
    made = writer(ours, believes=None)
    assert made.take_over(NOW).landed
    assert made.write({"a": b"1", "b": b"2"}, INTENT, NOW, "First").landed
    put_huge(stores())
    if restarted:
        ours = stores()
        made = writer(ours, "w-2", believes=None)
        ours.fetch([BRANCH])
    else:
        assert made.write({"a": b"3"}, INTENT, NOW, "Second") == Written(Outcome.CONFLICT)
        assert not made.superseded
    assert made.take_over(NOW).landed
    assert (made.term, contents(ours)) == (2, {"a": b"1", "b": b"2"})
    assert any("cannot be read" in alarm for alarm in made.alarms)
    assert made.write({"a": b"3"}, INTENT, NOW, "Second").landed
    assert contents(stores()) == {"a": b"3", "b": b"2"}


def test_where_nobody_signs_a_tip_whose_files_cannot_be_listed_is_a_stranger_s(remote, open_store):
    """A few kilobytes of folders that name each other make more paths than any memory holds."""
    ours = open_store()
    made = writer(ours, believes=None)
    assert made.take_over(NOW).landed
    assert made.write({"a": b"1"}, INTENT, NOW, "First").landed
    mode, oid = "100644", repos.write_object(remote, "blob", b"x")
    for _ in range(6):
        entries = b"".join(repos.tree_entry(mode, b"f%d" % number, oid) for number in range(10))
        mode, oid = "40000", repos.write_object(remote, "tree", entries)
    tip = repos.tip(remote, BRANCH)
    repos.git(
        remote, "update-ref", f"refs/heads/{BRANCH}",
        repos.git(remote, "commit-tree", oid, "-p", tip, "-m", "by hand"),
    )  # fmt: skip
    assert made.write({"a": b"2"}, INTENT, NOW, "Second") == Written(Outcome.CONFLICT)
    assert made.take_over(NOW).landed
    assert contents(ours) == {"a": b"1"}


def test_a_commit_that_counted_counts_no_more_when_its_key_is_revoked():
    """A thief of a controller's key wrote a high term; those who believed it follow the honest one again."""
    remote = MemoryRemote()
    folder = [keys.keyring(keys.line("controller"), keys.line("controller", "old"))]
    believes = Machines(lambda: folder[0], "signature").controllers()
    honest = leading(MemoryStore(remote, OURS))
    honest.write({"a": b"1"}, INTENT, NOW, "First")
    put(MemoryStore(remote), "Forged", stamp=HIGHER, sign=signing(keys.key("old")))
    reader = MemoryStore(remote)
    belief = Belief(reader, believes)
    forged = reader.fetch([BRANCH])[BRANCH]
    assert belief.newest(forged) == forged
    folder[0] = keys.keyring(*(keys.line("controller"), keys.line("controller", "old")), revoked=("old",))
    assert belief.newest(forged) == honest.tip


def test_branches_below_a_branch_that_is_gone_keep_it_away_and_are_named(stores, request):
    """Where somebody may delete a branch and push others: told in words, and over when they are gone."""
    ours, made, _ = rolled(stores)
    tip = made.tip

    def at_the_server(name, oid):
        if isinstance(ours, MemoryStore):
            ours._remote.tips.pop(name, None)
            ours._remote.tips |= {} if oid is None else {name: oid}
        else:
            option = ["-d", f"refs/heads/{name}"] if oid is None else [f"refs/heads/{name}", oid]
            repos.git(request.getfixturevalue("remote"), "update-ref", *option)

    at_the_server(BRANCH, None)
    at_the_server(f"{BRANCH}/x/y", tip)
    for _ in range(2):
        assert made.write({"a": b"3"}, INTENT, NOW, "Fourth") != Written(Outcome.COMMITTED)
        assert made.take_over(NOW) == Written(Outcome.REFUSED)
    (alarm,) = [alarm for alarm in made.alarms if "cannot be created again" in alarm]
    assert f"{BRANCH}/x/y" in alarm
    assert "delete" in alarm
    at_the_server(f"{BRANCH}/x/y", None)
    assert made.take_over(NOW).landed
    assert contents(ours) == {"a": b"2"}


STEPS = st.sampled_from(["write", "other writes", "take over", *ATTACKS, "set back", "remove"])


@given(st.lists(STEPS, max_size=14), st.data())
def test_whatever_strangers_do_the_branch_says_what_its_writers_said_last(steps, data):
    """The law: after a take-over the contents are those of the last write that landed, and terms only grow."""
    remote = MemoryRemote()
    ours = [MemoryStore(remote, OURS), MemoryStore(remote, OURS)]
    writers = [writer(ours[0], "w-1"), writer(ours[1], "w-2")]
    truth, term, count, signed = {}, 0, 0, []
    for step in [*steps, "take over"]:
        if step in ("write", "other writes"):
            count += 1
            who = writers[step != "write"]
            if who.write({"a": b"%d" % count, "b": b"b"}, INTENT, NOW, "Step").landed:
                truth = {"a": b"%d" % count, "b": b"b"}
        elif step == "take over":
            who = writers[0]
            assert who.take_over(NOW).landed
            assert contents(ours[0]) == truth
            assert who.term > term
            term = who.term
        elif step == "set back" and signed:
            remote.tips[BRANCH] = data.draw(st.sampled_from(signed))
        elif step == "remove":
            remote.tips.pop(BRANCH, None)
        elif step in ATTACKS:
            ATTACKS[step](MemoryStore(remote))
        tip = remote.tips.get(BRANCH)
        if tip is not None and BELIEVES(remote.commits[tip].commit) and tip not in signed:
            stamp = parse_stamp(remote.commits[tip].commit.trailers)
            signed += [tip] if stamp is not None else []


LOSSES = [pytest.param(["-d"], id="removed"), pytest.param([], id="set back")]


@pytest.mark.parametrize("loss", LOSSES)
def test_where_nobody_signs_a_branch_is_put_back_from_the_mirror(loss, remote, open_store, tmp_path):
    """The process after the one that last knew it fetched what it had become, and died."""
    store = open_store(mirror=tmp_path / "m")
    made = BranchWriter(store, BRANCH, "w-1", ROBOT, remembers=True)
    assert made.take_over(NOW).landed
    assert made.write({"a": b"1"}, INTENT, NOW, "First").landed
    first = repos.tip(remote, BRANCH)
    assert made.write({"a": b"2"}, INTENT, NOW, "Second", urgent=True).landed
    repos.git(remote, "update-ref", *loss, f"refs/heads/{BRANCH}", *([] if loss else [first]))
    store.close()
    for _ in range(2):
        store = open_store(mirror=tmp_path / "m")
        store.fetch([BRANCH])
        store.close()
    store = open_store(mirror=tmp_path / "m")
    found = BranchWriter(store, BRANCH, "w-2", ROBOT, remembers=True)
    assert found.take_over(NOW).landed
    assert (found.term, contents(store)) == (2, {"a": b"2"})
    assert found.put_back != ""


def test_a_term_above_what_clusters_bear_is_taken_by_nobody_but_the_one_that_has_the_branch(stores):
    ours, theirs = stores(), stores()
    made = writer(ours, believes=None)
    assert made.take_over(NOW).landed
    assert made.rise(NOW, 7).landed
    assert made.term == 8
    assert writer(theirs, "w-2", believes=None).take_over(NOW).landed
    assert made.rise(NOW, 20) is None
    assert made.superseded
