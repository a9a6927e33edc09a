"""`egs kubeconfig`, and what kubectl calls for it: from a slice's manifest to a way into its namespaces."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from reconciler.cli import output
from reconciler.clusters.kubernetes.tenancy import member_tokens
from reconciler.clusters.kubernetes.tenancy.member_tokens import Ticket, Whose
from reconciler.queries.arguments import lasting
from reconciler.queries.state import State, clock, read_state
from reconciler.sources.command_errors import NotAllowed, NotFound, WrongUse
from reconciler.sources.source import Source, opened
from schemas.documents.slice import SliceSpec
from schemas.reading.units import format_instant
from schemas.reading.yaml_text import dump


@dataclass(frozen=True, slots=True)
class KubeconfigOptions:
    """For whom, and where."""

    slice: str
    cluster: str
    namespace: str | None = None
    member: str | None = None


@dataclass(frozen=True, slots=True)
class Own:
    """The asker's own kubeconfig."""

    kubeconfig: str | None = None
    context: str | None = None


@dataclass(frozen=True, slots=True)
class Shape:
    """What comes out, and where it goes."""

    life: str | None = None  # of a token that is put in; None: a plugin asks for tokens
    protocol: str = member_tokens.VERSIONS[0]
    out: Path | None = None


def give(repo: str | None, asked: KubeconfigOptions, own: Own, shape: Shape) -> None:
    """A new kubeconfig; every older one of this member in these namespaces has ended."""
    life = _life(shape.life)
    if shape.protocol not in member_tokens.VERSIONS:
        raise WrongUse(f"--plugin-api {shape.protocol}: write {' or '.join(member_tokens.VERSIONS)}")
    if shape.out is not None:
        _check_outside_of_git(shape.out)
    with opened(repo) as source:
        state = read_state(source, clock(None, source))
        namespaces, email = _permitted(state, source, asked)
    door = member_tokens.opened(own.kubeconfig, own.context)
    if shape.out is not None and shape.out.expanduser().absolute() == door.path:
        raise WrongUse(
            f"--out {shape.out} is your own kubeconfig of the cluster; write the new one elsewhere"
        )
    server = member_tokens.server_of(door)
    api = member_tokens.connected(door, asked.cluster)
    users = {}
    for namespace in namespaces:
        ticket = member_tokens.renewed(api, Whose(asked.slice, namespace, email))
        if life is None:
            users[namespace] = member_tokens.by_plugin(ticket, door, shape.protocol)
            continue
        token = member_tokens.token(api, ticket, life)
        users[namespace] = member_tokens.by_token(token)
        output.note(f"the token of namespace {namespace} ends at {format_instant(token.end)}; keep it secret")
    _hand_over(dump(member_tokens.document(asked.slice, asked.cluster, server, users)), shape.out)


def _life(text: str | None) -> timedelta | None:
    life = lasting("--expires", text)
    if life is not None and not member_tokens.SHORTEST <= life <= member_tokens.LONGEST:
        raise WrongUse(f"--expires {text}: a token lives for 10 minutes to 7 days")
    return life


def _permitted(state: State, source: Source, asked: KubeconfigOptions) -> tuple[tuple[str, ...], str]:
    """The namespaces, and the address of the member as the manifest spells it."""
    spec = state.wanted.slices.get(asked.slice)
    if spec is None:
        raise NotFound("slice", asked.slice, state.wanted.slices)
    if asked.cluster not in spec.clusters:
        raise NotFound(f"cluster of slice {asked.slice} called", asked.cluster, spec.clusters)
    cluster = state.wanted.clusters.get(asked.cluster)
    if cluster is not None and cluster.driver != "kubernetes":
        raise NotAllowed(f"cluster {asked.cluster} is a simulated one; there is nothing for kubectl to reach")
    if asked.namespace is not None and asked.namespace not in spec.namespaces:
        raise NotFound(f"namespace of slice {asked.slice} called", asked.namespace, spec.namespaces)
    namespaces = spec.namespaces if asked.namespace is None else (asked.namespace,)
    return tuple(dict.fromkeys(namespaces)), _member(asked, spec, source)


def _member(asked: KubeconfigOptions, spec: SliceSpec, source: Source) -> str:
    email = asked.member or source.author(None).email
    found = next((p.email for p in spec.people if p.email.lower() == email.lower()), None)
    if found is None:
        raise NotAllowed(
            f"{email} is no member of slice {asked.slice}; name one with --member, or have an owner or admin add the "
            f"address with `egs slice members add {asked.slice} {email}`",
            "NotAMember",
        )
    return found


def _check_outside_of_git(path: Path) -> None:
    folder = path.expanduser().absolute().parent
    if any((place / ".git").exists() for place in (folder, *folder.parents)):
        raise NotAllowed(
            f"{path} is inside of a Git work tree, where it may get into a commit; write it elsewhere"
        )


def _hand_over(text: str, out: Path | None) -> None:
    if out is None:
        output.text(text.rstrip("\n"))
        return
    path = out.expanduser().absolute()
    try:
        # Only its owner may ever read it, and nobody ever finds half of it.
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).replace(path)
    except OSError as error:
        raise WrongUse(f"--out {out}: it cannot be written ({error.strerror})") from error
    output.note(f"wrote {out}; use it with `kubectl --kubeconfig {out} get pods`")


def answer_kubectl(ticket: Ticket, own: Own) -> None:
    """A fresh token, in the words that kubectl understands."""
    api = member_tokens.connected(member_tokens.opened(own.kubeconfig, own.context), "of this kubeconfig")
    token = member_tokens.token(api, ticket, member_tokens.EXEC_LIFE)
    status = {"token": token.value, "expirationTimestamp": format_instant(token.end)}
    credential = {"apiVersion": _protocol(), "kind": "ExecCredential", "status": status}
    output.text(json.dumps(credential))


def _protocol() -> str:
    """The version that kubectl speaks, as it says itself."""
    try:
        said = json.loads(os.environ.get("KUBERNETES_EXEC_INFO", "{}")).get("apiVersion")
    except (ValueError, AttributeError):
        said = None
    known = [member_tokens.AUTH + version for version in member_tokens.VERSIONS]
    return said if said in known else known[0]
