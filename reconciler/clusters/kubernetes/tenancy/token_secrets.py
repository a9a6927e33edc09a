"""Members' Secrets stay empty: what Kubernetes would fill one with never ends. Pure.

A member may write the Secret that their kubeconfig is bound to, and RBAC cannot say what is in it. As a token Secret
that names another member's ServiceAccount it would get that account's token, which never ends by itself. So in slices'
namespaces every Secret whose name begins so is refused unless it is Opaque, without data, and names no account.

The rule stands in Python for our webhook and beside it in CEL for policies (`policies` makes them). Held by
tests/reconciler/clusters/kubernetes/tenancy/test_token_secrets.py, which asks both, and an API server, about the
same Secrets.
"""

from __future__ import annotations

from reconciler.clusters.kubernetes.api.api_client import Json
from reconciler.clusters.kubernetes.names import MEMBER_KEY

ACCOUNT = "kubernetes.io/service-account.name"
"""Annotation that names the ServiceAccount whose token Kubernetes writes into a Secret."""
REFUSAL = (
    f"MemberSecret: Secrets {MEMBER_KEY}… are what kubeconfigs are bound to and stay empty in a slice's namespaces: "
    f"of type Opaque, without data and without the annotation {ACCOUNT}; give yours another name"
)


def is_refused(secret: Json, before: Json | None = None) -> bool:
    """Whether it is a member's Secret and more than that; one that was on its way out may lose its finalizers.

    That it is on its way out is believed of what the server had: anybody may write so into a new one.
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
"""CEL: a Secret is looked at."""
REFUSED = (
    "(has(object.type) && !(object.type in ['', 'Opaque'])) "
    "|| (has(object.data) && size(object.data) > 0) "
    f"|| (has(object.metadata.annotations) && '{ACCOUNT}' in object.metadata.annotations)"
)
"""CEL: one that is looked at is refused."""
