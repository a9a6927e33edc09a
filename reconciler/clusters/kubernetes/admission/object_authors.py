"""Authors of GPR objects: admission records the sender's user name in an annotation. Pure.

Users cannot set another name: it is refused or overwritten. A change that does not affect the request (a
label, another tool's annotation) keeps the author. Where admission policies can mutate objects
(MutatingAdmissionPolicy, GA from 1.36) a policy does it, elsewhere a webhook, with the result of `authored`.

The annotation is trusted only on objects younger than the policy or webhook that guards it (`guarded_since`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from reconciler.clusters.kubernetes.admission.object_shapes import constraints
from reconciler.clusters.kubernetes.api.api_client import Json
from reconciler.clusters.kubernetes.names import AUTHOR, MANAGED_BY, MANAGER, RELEASE
from schemas.errors import UserError
from schemas.export.crds import GROUP, PLURAL, VERSION
from schemas.reading.units import parse_instant

GUARD = "egs-request-authors"
"""Name of the policy, its binding, or the webhook configuration."""
ADMISSION = "admissionregistration.k8s.io/v1"
POLICY_PATH = f"/apis/{ADMISSION}/mutatingadmissionpolicies/{GUARD}"
BINDING_PATH = f"/apis/{ADMISSION}/mutatingadmissionpolicybindings/{GUARD}"
WEBHOOK_PATH = f"/apis/{ADMISSION}/mutatingwebhookconfigurations/{GUARD}"

_RULE: Json = {
    "apiGroups": [GROUP],
    "apiVersions": [VERSION],
    "resources": [PLURAL],
    "operations": ["CREATE", "UPDATE"],
    "scope": "Namespaced",
}
_MAIL = re.compile(r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9.-]{1,189}")
_ACCOUNT = re.compile(
    r"system:serviceaccount:(?P<namespace>[a-z0-9-]{1,63}):(?P<name>[a-z0-9](?:[a-z0-9.-]{0,61}[a-z0-9])?)"
)
_POINTER = "/metadata/annotations/" + AUTHOR.replace("~", "~0").replace("/", "~1")


def authored(request: Mapping[str, Any]) -> Sequence[Json]:
    """The JSON Patch that corrects the annotation; `request` is that of an AdmissionReview of a GPR object.

    Raises UserError `AuthorForged` if a user names another author.
    """
    user = str(request["userInfo"]["username"])
    annotations = request["object"]["metadata"].get("annotations")
    claimed = (annotations or {}).get(AUTHOR)
    old = request.get("oldObject") if request["operation"] == "UPDATE" else None
    before = None if old is None else (old["metadata"].get("annotations") or {}).get(AUTHOR)
    if claimed is not None and claimed not in (user, before):
        raise UserError(
            f"the annotation {AUTHOR} says {claimed!r}, but {user!r} sends this; leave it out, it is set automatically",
            "AuthorForged",
        )
    author = before if old is not None and _asks(old) == _asks(request["object"]) else user
    if author == claimed:
        return ()
    if author is None:
        return ({"op": "remove", "path": _POINTER},)
    if annotations is None:
        return ({"op": "add", "path": "/metadata/annotations", "value": {AUTHOR: author}},)
    return ({"op": "add", "path": _POINTER, "value": author},)


def _asks(item: Mapping[str, Any]) -> tuple[Any, Any]:
    """The parts of an object that its request is made of."""
    return item.get("spec"), (item["metadata"].get("annotations") or {}).get(RELEASE)


def address_of(user: str, cluster: str) -> str:
    """The address that stands for an API server's user in manifests; empty: none can.

    An e-mail address is used as it is. A service account gets a unique address that no mail reaches:
    `<name>@<namespace>.serviceaccount.<cluster>.invalid`.
    """
    account = _ACCOUNT.fullmatch(user)
    if account is not None:
        return f"{account['name']}@{account['namespace']}.serviceaccount.{cluster}.invalid"
    return user if _MAIL.fullmatch(user) and not user.lower().endswith(".invalid") else ""


def is_address(text: str) -> bool:
    """True if it is an address made by `address_of`."""
    return _MAIL.fullmatch(text) is not None


def author_webhooks(client: Json) -> Json:
    """The configuration that makes an API server call our webhook; `client` is its clientConfig."""
    webhook = {
        "name": f"authors.{PLURAL}.{GROUP}",
        "clientConfig": client,
        "rules": [_RULE],
        # In every namespace: one may become a slice's after an object was created in it.
        "namespaceSelector": {},
        "objectSelector": {},
        "matchConditions": [],
        "matchPolicy": "Equivalent",
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "timeoutSeconds": 5,
        "reinvocationPolicy": "IfNeeded",  # another webhook may have changed it after us
        "admissionReviewVersions": ["v1"],
    }
    return _guard("MutatingWebhookConfiguration", webhooks=[webhook])


def author_policies() -> tuple[Json, ...]:
    """The same without a webhook, for API servers with MutatingAdmissionPolicy v1: a policy and its binding.

    What users write into the annotation is overwritten, not refused.
    """
    variables = {
        "release": _annotation("object", RELEASE),
        "before": f'(request.operation == "CREATE" ? "" : {_annotation("oldObject", RELEASE)})',
        "asks": 'request.operation == "CREATE" || object.spec != oldObject.spec'
        " || variables.release != variables.before",
        "author": f"variables.asks ? request.userInfo.username : {_annotation('oldObject', AUTHOR)}",
    }
    spec: Json = {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "IfNeeded",
        "matchConstraints": constraints({}, _RULE),
        "matchConditions": [],
        "variables": [{"name": name, "expression": cel} for name, cel in variables.items()],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": _PATCH}}],
    }
    binding = {"policyName": GUARD}
    return _guard("MutatingAdmissionPolicy", spec=spec), _guard(
        "MutatingAdmissionPolicyBinding", spec=binding
    )


def _guard(kind: str, **content: object) -> Json:
    return {
        "apiVersion": ADMISSION,
        "kind": kind,
        "metadata": {"name": GUARD, "labels": {MANAGED_BY: MANAGER}},
        **content,
    }


def _annotation(item: str, name: str) -> str:
    """CEL: an annotation's value, or an empty string."""
    there = f'has({item}.metadata.annotations) && "{name}" in {item}.metadata.annotations'
    return f'({there} ? {item}.metadata.annotations["{name}"] : "")'


_PATCH = (
    "has(object.metadata.annotations)"
    f' ? [JSONPatch{{op: "add", path: "/metadata/annotations/" + jsonpatch.escapeKey("{AUTHOR}"), '
    "value: variables.author}]"
    f' : [JSONPatch{{op: "add", path: "/metadata/annotations", value: {{"{AUTHOR}": variables.author}}}}]'
)


def guarded_since(policy: Json | None, binding: Json | None, webhooks: Json | None) -> datetime | None:
    """Since when users cannot forge the annotation; None: they can. The arguments are the objects at their paths."""
    since = [_created(webhooks)] if webhooks is not None and _guards(webhooks) else []
    if policy is not None and binding is not None and policy["spec"].get("failurePolicy", "Fail") == "Fail":
        since.append(max(_created(policy), _created(binding)))
    return min(since, default=None)


def _guards(webhooks: Json) -> bool:
    """True if the relevant parts of the configuration are as we made them."""
    wanted = author_webhooks({})["webhooks"][0]
    narrow = ("failurePolicy", "namespaceSelector", "rules", "objectSelector", "matchConditions")
    return any(
        all((found.get(field) or None) == (wanted[field] or None) for field in narrow)
        for found in webhooks.get("webhooks") or ()
    )


def _created(item: Json) -> datetime:
    return parse_instant(item["metadata"]["creationTimestamp"])
