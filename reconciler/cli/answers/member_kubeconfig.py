"""`egs kubeconfig`, and what kubectl calls for it: from a slice's manifest to a way into its namespaces."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import timedelta

from egs.commands import output
from egs.commands.backend import Access
from reconciler.clusters.kubernetes.tenancy import member_tokens
from reconciler.clusters.kubernetes.tenancy.member_tokens import Ticket, Whose
from reconciler.queries.arguments import lasting
from reconciler.queries.state import State, clock, read_state
from reconciler.sources.command_errors import NotAllowed, NotFound, WrongUse
from reconciler.sources.open_source import opened
from reconciler.sources.source import Source
from schemas.documents.slice import SliceSpec
from schemas.reading.units import format_instant
from schemas.reading.yaml_text import dump


@dataclass(frozen=True, slots=True)
class Own:
    kubeconfig: str | None = None
    context: str | None = None


def given(repo: str | None, slice_: str, cluster: str, access: Access) -> str:
    """A new kubeconfig; older ones of this member in these namespaces end."""
    life = _life(access.life)
    if access.protocol not in member_tokens.VERSIONS:
        raise WrongUse(f"--plugin-api {access.protocol}: write {' or '.join(member_tokens.VERSIONS)}")
    with opened(repo) as source:
        state = read_state(source, clock(None, source))
        namespaces, email = _permitted(state, source, (slice_, cluster), access)
    door = member_tokens.opened(access.kubeconfig, access.context)
    if access.out is not None and access.out.expanduser().absolute() == door.path:
        raise WrongUse(
            f"--out {access.out} is your own kubeconfig of the cluster; write the new one elsewhere"
        )
    server = member_tokens.server_of(door)
    api = member_tokens.connected(door, cluster)
    users = {}
    for namespace in namespaces:
        ticket = member_tokens.renewed(api, Whose(slice_, namespace, email))
        if life is None:
            users[namespace] = member_tokens.by_plugin(ticket, door, access.protocol)
            continue
        token = member_tokens.token(api, ticket, life)
        users[namespace] = member_tokens.by_token(token)
        output.note(f"the token of namespace {namespace} ends at {format_instant(token.end)}; keep it secret")
    return dump(member_tokens.document(slice_, cluster, server, users))


def _life(text: str | None) -> timedelta | None:
    life = lasting("--expires", text)
    if life is not None and not member_tokens.SHORTEST <= life <= member_tokens.LONGEST:
        raise WrongUse(f"--expires {text}: a token lives for 10 minutes to 7 days")
    return life


def _permitted(
    state: State, source: Source, place: tuple[str, str], access: Access
) -> tuple[tuple[str, ...], str]:
    """The namespaces, and the member's address as in the manifest."""
    slice_, name = place
    spec = state.wanted.slices.get(slice_)
    if spec is None:
        raise NotFound("slice", slice_, state.wanted.slices)
    if name not in spec.clusters:
        raise NotFound(f"cluster of slice {slice_} called", name, spec.clusters)
    cluster = state.wanted.clusters.get(name)
    if cluster is not None and cluster.driver != "kubernetes":
        raise NotAllowed(f"cluster {name} is simulated; kubectl cannot reach it")
    if access.namespace is not None and access.namespace not in spec.namespaces:
        raise NotFound(f"namespace of slice {slice_} called", access.namespace, spec.namespaces)
    namespaces = spec.namespaces if access.namespace is None else (access.namespace,)
    return tuple(dict.fromkeys(namespaces)), _member(access.member, slice_, spec, source)


def _member(member: str | None, slice_: str, spec: SliceSpec, source: Source) -> str:
    email = member or source.author(None).email
    found = next((p.email for p in spec.people if p.email.lower() == email.lower()), None)
    if found is None:
        raise NotAllowed(
            f"{email} is not a member of slice {slice_}; name one with --member, or have an owner or admin add the "
            f"address with `egs slice members add {slice_} {email}`",
            "NotAMember",
        )
    return found


def answer_kubectl(ticket: Ticket, own: Own) -> None:
    """A fresh token, in the format that kubectl understands."""
    api = member_tokens.connected(member_tokens.opened(own.kubeconfig, own.context), "of this kubeconfig")
    token = member_tokens.token(api, ticket, member_tokens.EXEC_LIFE)
    status = {"token": token.value, "expirationTimestamp": format_instant(token.end)}
    credential = {"apiVersion": _protocol(), "kind": "ExecCredential", "status": status}
    output.text(json.dumps(credential))


def _protocol() -> str:
    """The version that kubectl says it speaks."""
    try:
        said = json.loads(os.environ.get("KUBERNETES_EXEC_INFO", "{}")).get("apiVersion")
    except (ValueError, AttributeError):
        said = None
    known = [member_tokens.AUTH + version for version in member_tokens.VERSIONS]
    return said if said in known else known[0]
