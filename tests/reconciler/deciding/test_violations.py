"""C5: which requests break a policy as it is now, and what people are told to do."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from reconciler.deciding.violations import violations
from reconciler.model.facts import Facts
from schemas.documents.gpr import RequestSpec
from schemas.status.gpr_status import ApprovalState, Assignment, Condition, GPRStatus, Phase
from tests.reconciler.accounts.test_monthly_limits import HOUR, waiting, wanted_of
from tests.support.world import START

OUT = Condition(type="OverLimit", reason="LimitExceeded", message="its month is taken", at=START)


def runs(phase: Phase = Phase.PROVISIONED, **given: Any) -> GPRStatus:
    spec = RequestSpec(slice="a", nodes=2, duration=3 * HOUR)
    held = Assignment(cluster="east", pool="h100", nodes=("h100-1", "h100-2"))
    update = {
        "phase": phase,
        "accepted_spec": spec,
        "assignment": held,
        "end_time": START + 3 * HOUR,
        **given,
    }
    return waiting("r").model_copy(update=update)


@pytest.mark.parametrize(
    ("bounds", "status", "rules", "fix"),
    [
        pytest.param({}, runs(), [], "", id="nothing is broken"),
        pytest.param({}, waiting("r"), [], "", id="nor by who waits"),
        pytest.param(
            {"limits": {"maxNodes": 1}},
            runs(),
            ["TooManyNodes"],
            "until 2026-11-21T11:00:00Z",
            id="it keeps its terms",
        ),
        pytest.param(
            {"limits": {"where": [{"cluster": "east", "maxDuration": "1h"}]}},
            runs(),
            ["DurationTooLong"],
            "egs gpr release a/r",
            id="a bound where it runs",
        ),
        pytest.param(
            {"limits": {"where": [{"cluster": "west", "maxDuration": "1h"}]}},
            runs(),
            [],
            "",
            id="a bound elsewhere",
        ),
        pytest.param(
            {"clusters": ["west"]}, runs(), ["ClusterNotAllowed"], "release", id="a cluster it lost"
        ),
        pytest.param(
            {"quota": {"gpus": 8}}, runs(), ["QuotaExceeded"], "release", id="more than its quota now"
        ),
        pytest.param(
            {"quota": {"gpus": 8}},
            runs(approval=ApprovalState(decision="approve", by="ada")),
            [],
            "",
            id="more than its quota, as an admin approved",
        ),
        pytest.param(
            {"limits": {"maxNodes": 1}},
            runs(Phase.RELEASING),
            ["TooManyNodes"],
            "its time is over",
            id="it is ending",
        ),
        pytest.param(
            {"limits": {"maxDuration": "30m"}},
            waiting("r"),
            ["DurationTooLong"],
            "egs gpr edit a/r",
            id="it waits",
        ),
        pytest.param(
            {},
            waiting("r", conditions=(OUT,)),
            ["LimitExceeded"],
            "lower the request",
            id="it waits outside",
        ),
        pytest.param(
            {"limits": {"maxNodes": 1}}, runs(Phase.COMPLETED), [], "", id="what is over breaks nothing"
        ),
    ],
)
def test_violations(bounds: dict[str, Any], status: GPRStatus, rules: list[str], fix: str) -> None:
    clusters = bounds.get("clusters")
    wanted = wanted_of(**{name: value for name, value in bounds.items() if name != "clusters"})
    if clusters:
        slice_ = wanted.slices["a"].model_copy(update={"clusters": tuple(clusters)})
        wanted = replace(wanted, slices={"a": slice_})
    found = violations(Facts(START + timedelta(minutes=1), requests={"a/r": status}), wanted)
    assert [violation.rule for violation in found] == rules
    assert all(fix in violation.fix for violation in found)
    assert all(
        violation.message.startswith(f"a/r is {status.phase} and violates a policy: ") for violation in found
    )
