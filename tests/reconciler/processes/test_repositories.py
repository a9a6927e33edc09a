"""Several repositories in one process: names, what each has to itself, trouble that stays where it is."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.clock import SystemClock, monotonic_s
from reconciler.credentials import Credentials
from reconciler.processes.metrics import Metrics
from reconciler.processes.repositories import Tending, apart, named
from reconciler.settings import Settings
from schemas.errors import UserError
from tests.support import repos
from tests.support.world import cluster, gpr, project, slice_

FILES = {"project.yaml": project(), "clusters/east.yaml": cluster(), "slices/a/slice.yaml": slice_("a")}


@pytest.mark.parametrize(
    ("given", "want"),
    [
        pytest.param(["https://forge.example.com/team/Fleet.git"], ["fleet"], id="the last part"),
        pytest.param(["git@forge.example.com:fleet.git"], ["fleet"], id="as ssh is often written"),
        pytest.param(["./my fleet/"], ["my-fleet"], id="what no name may hold becomes a dash"),
        pytest.param(["/"], ["repository"], id="nothing to take a name from"),
        pytest.param(["lab=https://a/x.git", "https://b/x.git"], ["lab", "x"], id="a name of one's own"),
        pytest.param(["https://a/x?y=z"], ["x-y-z"], id="a URL is no name"),
        pytest.param(["https://a/" + "x" * 90], ["x" * 63], id="long ones are cut"),
    ],
)
def test_a_repository_has_the_name_of_its_address_or_its_own(given, want):
    assert list(named(given)) == want


def test_two_of_one_name_need_names():
    with pytest.raises(UserError, match="NAME=ADDRESS"):
        named(["https://a/fleet.git", "https://b/fleet"])


def test_one_alone_has_the_state_folder_to_itself(tmp_path):
    alone = {"fleet": Settings("x", tmp_path)}
    assert apart(alone) == alone


def test_several_have_a_folder_each_and_never_show_a_server_another_s_password(tmp_path):
    (tmp_path / "keys" / "lab").mkdir(parents=True)
    common = Settings("x", tmp_path, credentials=Credentials(tmp_path / "keys"))
    found = apart({"fleet": common, "lab": replace(common, repo="y")})
    assert found["fleet"] == replace(common, state=tmp_path / "fleet")
    assert found["lab"].state == tmp_path / "lab"
    assert found["lab"].credentials == Credentials(tmp_path / "keys" / "lab")


def test_several_have_their_own_addresses_for_messages(tmp_path):
    """H12: slices of two repositories may have one name, and never one secret."""
    common = Settings("x", tmp_path, routes=tmp_path / "routes")
    found = apart({"fleet": common, "lab": common})
    assert [found[name].routes for name in found] == [tmp_path / "routes/fleet", tmp_path / "routes/lab"]


def until(claim) -> bool:
    """True as soon as it holds; False when it does not within a while."""
    end_s = monotonic_s() + 30
    while not claim() and monotonic_s() < end_s:
        threading.Event().wait(0.02)
    return bool(claim())


def bare(tmp_path: Path, name: str, **more: str) -> str:
    files = {path: text.encode() for path, text in (FILES | more).items()}
    return str(repos.bare(tmp_path / f"{name}.git", files))


def test_one_in_trouble_stops_no_other(tmp_path):
    """One is not there, one was not adopted, one cannot be understood; two are led."""
    orphan = bare(tmp_path, "orphan", **{"slices/a/gprs/x.yaml": gpr("a", "x")})
    given = [
        "gone=/no/such/place",
        orphan,
        "odd=ftp://example.com/x",
        bare(tmp_path, "one"),
        bare(tmp_path, "two"),
    ]
    common = Settings("", tmp_path / "state", pushes_per_minute=None)
    settings = apart({name: replace(common, repo=text) for name, text in named(given).items()})
    metrics = Metrics(SystemClock())
    tending = Tending(settings, SystemClock(), metrics)
    tending.start()
    try:
        progress = lambda name: tending.loops[name].progress  # noqa: E731
        assert until(lambda: progress("one").leading and progress("two").leading)
        assert until(lambda: all(progress(name).failing for name in ("gone", "orphan", "odd")))
        assert progress("orphan").failing == "NotAdopted"
        assert progress("odd").failing == "UnsupportedRemote"
        assert tending.ready().ok
        assert tending.alive().ok
        before = progress("one").tried
        tending.wake()
        assert until(lambda: progress("one").tried > before)
    finally:
        tending.stop()
    text = metrics.page("")[0].decode()
    assert 'egs_leading{repo="two"} 1.0' in text
    assert 'egs_leading{repo="orphan"} 0.0' in text


def test_one_alone_that_nothing_can_mend_ends_the_process(tmp_path):
    orphan = bare(tmp_path, "orphan", **{"slices/a/gprs/x.yaml": gpr("a", "x")})
    tending = Tending({"orphan": Settings(orphan, tmp_path / "state")}, SystemClock(), Metrics(SystemClock()))
    tending.start()
    tending.wait()
    with pytest.raises(UserError) as caught:
        tending.stop()
    assert caught.value.reason == "NotAdopted"


def test_whoever_is_not_elected_follows(tmp_path):
    settings = {"one": Settings(bare(tmp_path, "one"), tmp_path / "state")}
    elected = threading.Event()
    tending = Tending(settings, SystemClock(), Metrics(SystemClock()), may_lead=elected.is_set)
    tending.start()
    try:
        assert until(lambda: tending.loops["one"].progress.leading is False)
        assert tending.ready().repositories["one"][0] == "Following"
        elected.set()
        tending.wake()
        assert until(lambda: tending.loops["one"].progress.leading)
    finally:
        tending.stop()
