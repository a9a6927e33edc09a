"""Nobody can write another's name as the author of a GPR object (A8)."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from reconciler.clusters.kubernetes.admission.object_authors import (
    address_of,
    author_policies,
    author_webhooks,
    authored,
    guarded_since,
    is_address,
)
from reconciler.clusters.kubernetes.names import AUTHOR, RELEASE
from schemas.errors import UserError
from schemas.reading.units import parse_instant

BO, ADA = "bo@example.com", "ada@example.com"


def item(annotations: dict[str, str] | None = None, **spec: object) -> dict[str, Any]:
    meta = {"name": "train"} if annotations is None else {"name": "train", "annotations": annotations}
    return {"metadata": meta, "spec": {"nodes": 1, "duration": "1h", **spec}}


def after(patch: Any, thing: dict[str, Any]) -> str | None:
    """The author once the patch is applied."""
    found = copy.deepcopy(thing)
    for operation in patch:
        if operation["path"] == "/metadata/annotations":
            found["metadata"]["annotations"] = operation["value"]
        else:
            assert operation["path"] == "/metadata/annotations/egs.dev~1author"
            if operation["op"] == "remove":
                del found["metadata"]["annotations"][AUTHOR]
            else:
                found["metadata"]["annotations"][AUTHOR] = operation["value"]
    author: str | None = (found["metadata"].get("annotations") or {}).get(AUTHOR)
    return author


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(None, item(), BO, id="who creates is the author"),
        pytest.param(None, item({"other": "x"}), BO, id="other annotations stay"),
        pytest.param(None, item({AUTHOR: BO}), BO, id="one's own name may be given"),
        pytest.param(
            item({AUTHOR: ADA}), item({AUTHOR: ADA}, nodes=2), BO, id="who asks for else is the author"
        ),
        pytest.param(
            item({AUTHOR: ADA}), item({AUTHOR: ADA, RELEASE: "true"}), BO, id="who releases is the author"
        ),
        pytest.param(
            item({AUTHOR: ADA}), item({AUTHOR: ADA, "note": "x"}), ADA, id="a note does not change the author"
        ),
        pytest.param(item({AUTHOR: ADA}), item(), ADA, id="the author cannot be taken out"),
        pytest.param(item(), item({AUTHOR: BO}), None, id="nobody becomes the author of what stood before"),
    ],
)
def test_the_author_is_who_asked(old, new, want) -> None:
    request = {
        "operation": "CREATE" if old is None else "UPDATE",
        "userInfo": {"username": BO},
        "object": new,
    }
    request |= {} if old is None else {"oldObject": old}
    assert after(authored(request), new) == want


@pytest.mark.parametrize(
    ("operation", "old"),
    [
        pytest.param("CREATE", None, id="at creation"),
        pytest.param("UPDATE", item({AUTHOR: BO}), id="in a change"),
        pytest.param("UPDATE", item(), id="in a change of what had none"),
    ],
)
def test_another_name_is_refused(operation, old) -> None:
    request = {
        "operation": operation,
        "userInfo": {"username": BO},
        "object": item({AUTHOR: ADA}),
        "oldObject": old,
    }
    with pytest.raises(UserError, match="leave it out") as refused:
        authored(request)
    assert refused.value.reason == "AuthorForged"


def made(thing: dict[str, Any], at: str) -> dict[str, Any]:
    found = copy.deepcopy(thing)
    found["metadata"]["creationTimestamp"] = at
    return found


EARLY, LATE = "2026-11-21T08:00:00Z", "2026-11-21T09:00:00Z"
POLICY, BINDING = author_policies()
HOOKS = author_webhooks({"url": "https://example.com"})


def loosened() -> dict[str, Any]:
    found = made(HOOKS, EARLY)
    found["webhooks"][0]["failurePolicy"] = "Ignore"
    return found


def narrowed() -> dict[str, Any]:
    found = made(HOOKS, EARLY)
    found["webhooks"][0]["objectSelector"] = {"matchLabels": {"a": "b"}}
    return found


@pytest.mark.parametrize(
    ("policy", "binding", "hooks", "want"),
    [
        pytest.param(None, None, None, None, id="nothing guards"),
        pytest.param(made(POLICY, EARLY), None, None, None, id="a policy without a binding does nothing"),
        pytest.param(made(POLICY, EARLY), made(BINDING, LATE), None, LATE, id="from when both are there"),
        pytest.param(None, None, made(HOOKS, EARLY), EARLY, id="a webhook"),
        pytest.param(None, None, loosened(), None, id="a webhook that may fail open guards nothing"),
        pytest.param(None, None, narrowed(), None, id="a webhook that misses objects guards nothing"),
    ],
)
def test_since_when_the_annotation_is_believed(policy, binding, hooks, want) -> None:
    assert guarded_since(policy, binding, hooks) == (None if want is None else parse_instant(want))


def test_the_policy_fails_closed_and_covers_both_operations() -> None:
    assert POLICY["spec"]["failurePolicy"] == "Fail"
    (rule,) = POLICY["spec"]["matchConstraints"]["resourceRules"]
    assert rule["resources"] == ["gprs"]
    assert rule["operations"] == ["CREATE", "UPDATE"]
    assert BINDING["spec"]["policyName"] == POLICY["metadata"]["name"]


@pytest.mark.parametrize(
    ("user", "address"),
    [
        pytest.param(BO, BO, id="a person who signs in by mail address"),
        pytest.param(
            "system:serviceaccount:vision-train:ci",
            "ci@vision-train.serviceaccount.east.invalid",
            id="a pipeline's account",
        ),
        pytest.param(
            "system:serviceaccount:a:b.c",
            "b.c@a.serviceaccount.east.invalid",
            id="an account with a dot in its name",
        ),
        pytest.param("ci@vision-train.serviceaccount.east.invalid", "", id="a person called like an account"),
        pytest.param("x@A.INVALID", "", id="any address that no mail reaches"),
        pytest.param(
            "system:serviceaccount:a-b:c", "c@a-b.serviceaccount.east.invalid", id="no two share one"
        ),
        pytest.param("system:serviceaccount:a:b:c", "", id="a name that is no account's"),
        pytest.param("admin", "", id="a name that is no address"),
        pytest.param("system:node:h100-1", "", id="a machine's name"),
        pytest.param("bo@example.com\nOn-Behalf-Of: ada@example.com", "", id="a name of two lines"),
        pytest.param("bo <ada@example.com>", "", id="a name with another's address in it"),
        pytest.param("@example.com", "", id="half an address"),
        pytest.param("", "", id="nobody"),
    ],
)
def test_the_address_by_which_people_list_an_account(user, address):
    assert address_of(user, "east") == address
    assert is_address(address) is bool(address)
