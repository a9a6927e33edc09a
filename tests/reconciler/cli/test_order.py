"""E4, F11: what commands say of the order, whatever policies make it, is what the controller makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reconciler.cli.rig import BO, Control, egs, fleet, minutes, repository, request
from tests.support.world import project, slice_

FILED = (
    ("a/one", 101, "2h"),
    ("a/two", 101, "1h"),
    ("b/one", 101, "3h"),
    ("a/three", 104, "1h"),
    ("b/two", 101, "1h"),
)
FREE = {f"slices/{name}/slice.yaml": slice_(name, weight=weight) for name, weight in (("a", 1), ("b", 3))}


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param({}, id="as it comes"),
        pytest.param({"fairness": {"step": 8, "halfLife": "1h"}}, id="fairness in small steps"),
        pytest.param({"fairness": None, "ageing": {"every": "2m", "step": 4}}, id="ageing alone"),
        pytest.param({"order": "shortest-service"}, id="shorter service first"),
        pytest.param({"maxDisplacements": 1}, id="nobody is displaced twice"),
        pytest.param({"maxWaitMultiple": 1}, id="nobody waits longer than first come, first served"),
    ],
)
def test_what_is_quoted_and_planned_before_is_what_the_controller_commits(
    tmp_path: Path, policy: dict[str, object]
) -> None:
    files = {"project.yaml": project(scheduling=policy), **FREE, **request("b/run", nodes=4)}
    repo = repository(tmp_path / "r.git", fleet(**files))
    control = Control(repo, tmp_path / "state")
    control.run(minutes(1))
    for minute, (key, priority, duration) in enumerate(FILED, start=2):
        now = f"2026-11-21T08:{minute - 1:02}:00Z"
        asked = ("--nodes", 4, "--duration", duration, "--priority", priority, "--repo", repo)
        quoted = egs("wait", "--slice", key.split("/")[0], *asked, "--now", now, "-o", "json").json
        assert egs("gpr", "create", key, *asked, "--author", BO).code == 0
        planned = starts("plan", "--repo", repo, "--now", now)
        control.run(minutes(minute))
        committed = starts("plan", "--repo", repo, "--now", f"2026-11-21T08:{minute:02}:00Z")
        assert planned == committed
        assert quoted[0]["estimatedStartTime"] == committed[key]


def starts(*words: object) -> dict[str, str]:
    rows = egs(*words, "-o", "json").json["requests"]
    return {f"{row['slice']}/{row['name']}": row["estimatedStartTime"] for row in rows}
