"""Members' Secrets stay empty: a token written by Kubernetes would never expire. Pure.

A member may write the Secret that their kubeconfig is bound to, and RBAC cannot restrict its content. As a
token Secret for another member's ServiceAccount it would get that account's token, which never expires. So in
slices' namespaces every Secret with this name prefix is refused unless it is Opaque, has no data, and names
no account.

The rule exists in Python for our webhook and next to it in CEL for policies (made by `admission_policies`). Held by
tests/reconciler/clusters/kubernetes/tenancy/test_token_secrets.py, which compares both, and an API server, on
the same Secrets.
"""

from __future__ import annotations

from reconciler.clusters.kubernetes.api.api_client import Json
from reconciler.clusters.kubernetes.names import MEMBER_KEY

ACCOUNT = "kubernetes.io/service-account.name"
"""Annotation with the ServiceAccount whose token Kubernetes writes into a Secret."""
REFUSAL = (
    f"MemberSecret: Secrets {MEMBER_KEY}… belong to kubeconfigs and must stay empty in a slice's namespaces: "
    f"of type Opaque, without data and without the annotation {ACCOUNT}; choose another name for yours"
)


def is_refused(secret: Json, before: Json | None = None) -> bool:
    """True if it is a member's Secret with content; one that is being deleted may lose its finalizers.

    Being deleted is only believed of the server's old version: a new object could claim it.
    """
    meta, old = secret["metadata"], (before or {}).get("metadata") or {}
    if not meta.get("name", "").startswith(MEMBER_KEY) or old.get("deletionTimestamp"):
        return False
    named = ACCOUNT in (meta.get("annotations") or {})
    return (secret.get("type") or "Opaque") != "Opaque" or bool(secret.get("data")) or named


CONCERNS = (
    f"has(object.metadata.name) && object.metadata.name.startsWith('{MEMBER_KEY}') "
    "&& (request.operation != 'UPDATE' || !has(oldObject.metadata.deletionTimestamp))"
)
"""CEL: the Secret is checked."""
REFUSED = (
    "(has(object.type) && !(object.type in ['', 'Opaque'])) "
    "|| (has(object.data) && size(object.data) > 0) "
    f"|| (has(object.metadata.annotations) && '{ACCOUNT}' in object.metadata.annotations)"
)
"""CEL: a checked Secret is refused."""
