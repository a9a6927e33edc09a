"""A cancel or a release that is acknowledged ends the request, whatever it became since the portal looked.

Every pair of the phase that the portal saw and the true one: the controller goes on and the portal is not told.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import combinations_with_replacement, count
from typing import Any

import pytest

from schemas.reading.units import format_instant
from tests.support import repos
from tests.support.portal import Site

STAGES = ("filed", "Queued", "Provisioning", "Provisioned", "Releasing", "Completed")
OVER = {"Cancelled", "Releasing", "Completed"}
GPR = "/api/v1/gpr"
NAMES = (f"try{number}" for number in count())


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("site"))
    yield made
    made.close()


class Life:
    """One request on its way through the stages; the portal sees it only where it is told to look."""

    def __init__(self, site: Site) -> None:
        self.site, self.name = site, next(NAMES)
        self.key, self.path = f"vision/{self.name}", f"slices/vision/gprs/{self.name}.yaml"
        site.pass_time(20)  # what was there before is over
        self.begun = site.now
        start = format_instant(self.begun + timedelta(minutes=8))
        site.file(self.key, nodes=1, duration="0d0h4m", notBefore=start)

    def go_on(self, stage: str) -> None:
        """To that stage, behind the portal's back."""
        after = {
            "filed": 0,
            "Queued": 1,
            "Provisioning": 7,
            "Provisioned": 9,
            "Releasing": 12,
            "Completed": 20,
        }
        until = self.begun + timedelta(minutes=after[stage])
        while stage != "filed":
            cycle = self.site.controller.cycle(self.site.now)
            if cycle.wake > until:
                break
            self.site.clock.set(max(self.site.now, cycle.wake))
        assert self.phase() == stage

    def phase(self) -> str:
        """What the controller has committed of it."""
        shown = repos.git(self.site.repo, "ls-tree", "--name-only", "egs/status", self.path)
        text = repos.git(self.site.repo, "show", f"egs/status:{self.path}") if shown else "  phase: filed"
        return next(line.split()[1] for line in text.splitlines() if line.startswith("  phase: "))

    def cycle(self) -> str:
        """The phase after the controller's next look."""
        self.site.controller.cycle(self.site.now)
        return self.phase()


def _cancel(client: Any, key: str) -> tuple[int, str]:
    return _said(client.delete(GPR, params={"gprId": key}))


def _release(client: Any, key: str) -> tuple[int, str]:
    return _said(client.put(GPR, json={"gprId": key, "earlyRelease": True}))


def _said(answer: Any) -> tuple[int, str]:
    error = answer.json().get("error")
    return answer.status_code, "" if error is None else error["errorKey"]


@pytest.mark.parametrize("door", [pytest.param(_cancel, id="cancel"), pytest.param(_release, id="release")])
@pytest.mark.parametrize(
    ("saw", "true"),
    [pytest.param(a, b, id=f"seen {a}, truly {b}") for a, b in combinations_with_replacement(STAGES, 2)],
)
def test_what_is_acknowledged_is_over_with_the_next_cycle(site: Site, saw: str, true: str, door: Any) -> None:
    life = Life(site)
    life.go_on(saw)
    site.refresh()
    life.go_on(true)
    status, key = door(site.client("bo-editor"), life.key)
    became = life.cycle()
    if status == 200:
        assert became in OVER, became
        assert site.main(life.path) is not None, "nothing that a lease needs is deleted"
    else:
        assert (status, key) in {
            (409, "NotProvisioned"), (409, "GpuAlreadyProvisioned"), (409, "GpuAlreadyReleased"),
        }  # fmt: skip
        assert "earlyRelease" not in (site.main(life.path) or "")
        assert key != "GpuAlreadyReleased" or became in OVER
    if {saw, true} <= {"filed", "Queued", "Provisioning", "Provisioned"}:
        other = _release if door is _cancel else _cancel
        assert status == 200 or other(site.client("bo-editor"), life.key)[0] == 200, "one of both ends it"
        assert life.cycle() in OVER


@pytest.mark.parametrize(
    ("edit", "want"),
    [
        pytest.param(
            {"priority": 7}, (409, "GpuAlreadyProvisioned"), id="a priority does not count any more"
        ),
        pytest.param({"numberOfGPUNodes": 2}, (409, "GpuAlreadyProvisioned"), id="nor does a size"),
        pytest.param({"extend": "5m"}, (200, ""), id="grace is asked for"),
        pytest.param({"gprName": "Second try"}, (200, ""), id="a shown name is another"),
    ],
)
def test_an_edit_that_crosses_the_hand_over_says_what_became_of_it(
    site: Site, edit: dict[str, Any], want: tuple[int, str]
) -> None:
    life = Life(site)
    life.go_on("Queued")
    site.refresh()
    life.go_on("Provisioning")
    client = site.client("bo-editor")
    assert _said(client.put(GPR, json={"gprId": life.key, **edit})) == want
    site.settle()
    data = client.get(GPR, params={"gprId": life.key}).json()["data"]
    assert ("cannot be changed while it holds nodes" in data["message"]) is (want[0] == 409)
    # What lies in the file and does not count is in nobody's way.
    assert _said(client.put(GPR, json={"gprId": life.key, "idleTimeOutDuration": "10m"}))[0] == 200
    restored = _said(client.post(f"{GPR}/restore", json={"gprId": life.key}))
    assert restored == ((200, "") if want[0] == 409 else (409, "Unchanged"))
    assert _release(client, life.key)[0] == 200
    assert life.cycle() in OVER


@pytest.fixture
def gone(site: Site) -> Life:
    """A lease whose file somebody deleted by hand; everybody has seen it."""
    life = Life(site)
    life.go_on("Provisioned")
    site.commit({life.path: None})
    site.settle()
    return life


def test_a_lease_without_a_file_says_what_ends_it_and_what_restores_it(site: Site, gone: Life) -> None:
    client = site.client("bo-editor")
    assert gone.phase() == "Provisioned", "a file that is gone ends nothing"
    told = client.get(GPR, params={"gprId": gone.key}).json()["data"]["message"]
    why = " ".join(client.get(f"{GPR}/why", params={"gprId": gone.key}).json()["data"]["reasons"])
    for text in (told, why):
        assert f"`egs gpr release {gone.key}`" in text
        assert f"`egs gpr restore {gone.key}`" in text


@pytest.mark.parametrize("how", ["deleted", "broken", "of other terms"])
def test_every_word_works_on_a_lease_whatever_its_file_became(site: Site, how: str) -> None:
    life = Life(site)
    life.go_on("Provisioned")
    before = site.main(life.path) or ""
    text = {"deleted": None, "broken": "kind: [", "of other terms": before.replace("nodes: 1", "nodes: 2")}[
        how
    ]
    site.commit({life.path: text})
    site.settle()
    client = site.client("bo-editor")
    assert _said(client.post(f"{GPR}/restore", json={"gprId": life.key})) == (200, "")
    if how == "of other terms":  # the accepted ones are written
        assert "nodes: 1" in (site.main(life.path) or "")
    else:
        assert site.main(life.path) == before
    site.commit({life.path: text})
    site.settle()
    if how != "broken":
        assert _said(client.put(GPR, json={"gprId": life.key, "extend": "5m"}))[0] == 200
        assert "extend" in (site.main(life.path) or "")
        site.commit({life.path: text})
        site.settle()
    assert _release(client, life.key) == (200, "")
    assert life.cycle() in OVER
