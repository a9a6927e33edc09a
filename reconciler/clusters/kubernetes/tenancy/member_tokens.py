"""A member's access to a slice's namespaces: tokens of their own ServiceAccount, bound to a Secret of their
own.

The Secret is empty. While it exists the tokens bound to it are valid; creating it again ends all earlier
tokens, and so does deleting the member's ServiceAccount, which owns it. A kubeconfig contains the Secret's
uid: it is not valid for a later Secret. All calls use the caller's own credentials: a member's reach only
their own ServiceAccount and Secret, an admin's reach everyone's.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from reconciler.clusters.kubernetes.api.api_client import Api, Json, Rejected
from reconciler.clusters.kubernetes.api.connection import LIBRARY_MISSING, from_text
from reconciler.clusters.kubernetes.names import NAMESPACE_SLICE
from reconciler.clusters.kubernetes.tenancy.slice_objects import MEMBER_EMAIL, account_name, secret_name
from schemas.errors import Fault, UserError
from schemas.reading.units import parse_instant

SHORTEST, LONGEST = timedelta(minutes=10), timedelta(days=7)
"""The server's minimum and our maximum: a token in a file is a risk."""
EXEC_LIFE = timedelta(hours=1)
"""Of a token that kubectl requests when needed."""
PLUGIN = "kubeconfig-token"
"""The command that kubectl calls."""
AUTH = "client.authentication.k8s.io/"
VERSIONS = ("v1", "v1beta1")
"""Versions of kubectl's credential protocol; kubectl before 1.22 only knows v1beta1."""


@dataclass(frozen=True, slots=True)
class Whose:
    """A member of a slice, in one of its namespaces."""

    slice: str
    namespace: str
    email: str


@dataclass(frozen=True, slots=True)
class Ticket:
    """What a token is requested with; contains no secret."""

    namespace: str
    account: str
    secret: str
    uid: str


@dataclass(frozen=True, slots=True)
class Token:
    """A token and its end, as set by the server."""

    value: str
    end: datetime

    def __repr__(self) -> str:
        return f"Token(end={self.end!r})"  # no secret in any text


@dataclass(frozen=True, slots=True)
class Door:
    """The caller's own kubeconfig: their way into the cluster."""

    path: Path
    text: str
    context: str | None


def opened(given: str | None, context: str | None) -> Door:
    """The kubeconfig given by `--kubeconfig`, else KUBECONFIG; else kubectl's default."""
    named = given or os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
    if os.pathsep in named:
        raise UserError(
            "KUBECONFIG lists several files; choose the one for this cluster with --kubeconfig FILE",
            "KubeconfigUnclear",
        )
    path = Path(named).expanduser().absolute()
    try:
        return Door(path, path.read_text(encoding="utf-8"), context)
    except (OSError, ValueError) as error:
        raise UserError(
            f"{path} cannot be read ({type(error).__name__}); give your own kubeconfig of the cluster with "
            "--kubeconfig FILE",
            "KubeconfigMissing",
        ) from error


def connected(door: Door, cluster: str) -> Api:
    """The cluster's API with the caller's own credentials."""
    try:
        return from_text(cluster, door.text, door.context)
    except UserError as error:
        if error.reason == LIBRARY_MISSING:
            raise
        raise UserError(
            f"{door.path} cannot be used; try it with kubectl, or choose with --context", "KubeconfigUnclear"
        ) from error


def renewed(api: Api, whose: Whose) -> Ticket:
    """A new Secret in place of the old one; every token bound to the old one becomes invalid."""
    account, secret = account_name(whose.email), secret_name(whose.email)
    base = f"/api/v1/namespaces/{whose.namespace}"
    with _told(whose):
        owner = api.get(f"{base}/serviceaccounts/{account}")
        _check_slice(owner, whose)
        api.delete(f"{base}/secrets/{secret}")
        made = api.apply(f"{base}/secrets/{secret}", _secret(whose, secret, owner))
    return Ticket(whose.namespace, account, secret, made["metadata"]["uid"])


def standing(api: Api, whose: Whose) -> Ticket:
    """The existing ticket, so that earlier tokens stay valid; a new one if there is none."""
    secret = secret_name(whose.email)
    base = f"/api/v1/namespaces/{whose.namespace}"
    with _told(whose):
        owner = api.get(f"{base}/serviceaccounts/{account_name(whose.email)}")
        _check_slice(owner, whose)
        found = api.find(f"{base}/secrets/{secret}")
    if found is None or not _is_its(found, owner):
        return renewed(api, whose)
    return Ticket(whose.namespace, owner["metadata"]["name"], secret, found["metadata"]["uid"])


def _is_its(secret: Json, owner: Json) -> bool:
    """True if it is owned by exactly that ServiceAccount, and is not being deleted."""
    owners = {each["uid"] for each in secret["metadata"].get("ownerReferences") or ()}
    return owner["metadata"]["uid"] in owners and "deletionTimestamp" not in secret["metadata"]


def _check_slice(owner: Json, whose: Whose) -> None:
    found = (owner["metadata"].get("labels") or {}).get(NAMESPACE_SLICE)
    if found != whose.slice:
        raise UserError(
            f"namespace {whose.namespace} belongs to {f'slice {found}' if found else 'no slice'} in the cluster "
            f"that your kubeconfig reaches, not to slice {whose.slice}; choose another cluster with --context",
            "KubeconfigRefused",
        )


def _secret(whose: Whose, name: str, owner: Json) -> Json:
    owned_by = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }
    meta = {
        "name": name,
        "namespace": whose.namespace,
        "labels": owner["metadata"]["labels"],
        "annotations": {MEMBER_EMAIL: whose.email},
        "ownerReferences": [owned_by],
    }
    return {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": meta}


def token(api: Api, ticket: Ticket, life: timedelta) -> Token:
    """A token bound to the ticket's Secret; the server may shorten its lifetime."""
    bound = {"kind": "Secret", "apiVersion": "v1", "name": ticket.secret, "uid": ticket.uid}
    spec = {"expirationSeconds": int(life.total_seconds()), "boundObjectRef": bound}
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    path = f"/api/v1/namespaces/{ticket.namespace}/serviceaccounts/{ticket.account}/token"
    try:
        status = api.create(path, body)["status"]
    except Rejected as no:
        if no.status not in {403, 404, 409}:
            raise
        raise UserError(
            f"this kubeconfig of namespace {ticket.namespace} is no longer valid: it was issued again, or its "
            "owner is no longer a member; get a new one with `egs kubeconfig`",
            "KubeconfigEnded",
        ) from no
    return Token(status["token"], parse_instant(status["expirationTimestamp"]))


@contextmanager
def _told(whose: Whose) -> Iterator[None]:
    """Turns a server's refusal into a message for the caller."""
    try:
        yield
    except Rejected as no:
        if no.status not in {401, 403, 404}:
            raise
        why = "has no ServiceAccount" if no.status == 404 else "refuses your credentials for that"
        raise UserError(
            f"{whose.email} gets no kubeconfig for slice {whose.slice}: namespace {whose.namespace} {why}; is it "
            "the right cluster (--context), are the credentials the person's own or an admin's, and "
            "does the slice exist yet?",
            "KubeconfigRefused",
        ) from no


def server_of(door: Door) -> Json:
    """The cluster's address and authority, without the caller's credentials."""
    try:
        parsed: Any = yaml.safe_load(door.text)
        name = door.context or parsed["current-context"]
        context = next(c["context"] for c in parsed["contexts"] if c["name"] == name)
        cluster: Json = next(c["cluster"] for c in parsed["clusters"] if c["name"] == context["cluster"])
        users: Json = {u["name"]: u["user"] for u in parsed.get("users") or ()}
        user = users.get(context.get("user")) or {}
        words = (user.get("exec") or {}).get("args") or ()
    except (yaml.YAMLError, KeyError, TypeError, AttributeError, StopIteration) as error:
        raise UserError(
            f"{door.path} has no such context; `kubectl config get-contexts` lists them", "KubeconfigUnclear"
        ) from error
    if PLUGIN in words:
        raise UserError(
            f"{door.path} was made by `egs`; give your own kubeconfig of the cluster with --kubeconfig FILE",
            "KubeconfigUnclear",
        )
    kept = (
        "server",
        "certificate-authority-data",
        "tls-server-name",
        "insecure-skip-tls-verify",
        "proxy-url",
    )
    found = {key: cluster[key] for key in kept if key in cluster}
    authority = cluster.get("certificate-authority")
    if authority and "certificate-authority-data" not in found:
        found["certificate-authority-data"] = _embedded(door.path.parent / authority)
    return found


def _embedded(path: Path) -> str:
    try:
        return base64.b64encode(path.read_bytes()).decode()
    except OSError as error:
        raise Fault(f"the certificate authority {path} cannot be read", "KubeconfigMissing") from error


def by_token(given: Token) -> Json:
    """A user entry with the token itself."""
    return {"token": given.value}


def by_plugin(ticket: Ticket, door: Door, version: str) -> Json:
    """A user entry with which kubectl calls `egs` whenever it needs a token."""
    words = [PLUGIN, "--namespace", ticket.namespace, "--account", ticket.account]
    words += ["--secret", ticket.secret, "--uid", ticket.uid, "--kubeconfig", str(door.path)]
    words += ["--context", door.context] if door.context else []
    plugin: Json = {"apiVersion": AUTH + version, "command": "egs", "args": words}
    plugin["installHint"] = "egs is not installed, or not in PATH: it gets the tokens for this kubeconfig"
    if version == "v1":
        plugin |= {"interactiveMode": "Never", "provideClusterInfo": False}
    return {"exec": plugin}


def document(slice_: str, cluster: str, server: Json, users: Mapping[str, Json]) -> Json:
    """A kubeconfig with a context per namespace; the first is the current one."""
    where = f"{cluster}-{slice_}"
    names: Sequence[str] = list(users)
    contexts = [
        {"name": f"{where}-{n}", "context": {"cluster": cluster, "namespace": n, "user": f"{where}-{n}"}}
        for n in names
    ]
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": server}],
        "users": [{"name": f"{where}-{n}", "user": user} for n, user in users.items()],
        "contexts": contexts,
        "current-context": contexts[0]["name"],
    }
