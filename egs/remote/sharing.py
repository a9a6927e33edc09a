"""Slices, their members, decisions and keys over the HTTP API."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from egs import clock
from egs.commands import output
from egs.commands.backend import Decision
from egs.commands.errors import not_allowed, wrong_use
from egs.commands.output import Row
from egs.remote import asking
from egs.remote.changes import report
from egs.remote.fields import named

_LASTING = re.compile(r"([0-9]{1,6})([wdhm])")
_UNITS = {"w": timedelta(weeks=1), "d": timedelta(days=1), "h": timedelta(hours=1), "m": timedelta(minutes=1)}
_WORKSPACE = "slice-workspace"


def request_slice(name: str, about: Mapping[str, Any]) -> None:
    """Ask for a slice; an admin's is made at once."""
    if len(about["owners"]) > 1:
        raise wrong_use(
            "on a server a slice is made with one owner; `egs slice edit` on a repository adds more"
        )
    body = {
        "workspaceName": name,
        "clusters": list(about["clusters"]) or _only_cluster(),
        "namespaces": list(about["namespaces"]),
        "members": list(about["members"]),
        "email": about["owners"][0] if about["owners"] else None,
        "quotaGPUs": about["quota"],
        "description": about["text"],
    }
    report(f"Slice {name}", asking.send("POST", _WORKSPACE, body)["change"])


def create_slice(name: str, about: Mapping[str, Any]) -> None:
    """Make a slice. Raises Said if the caller is not an admin."""
    if not asking.get("auth")["isAdmin"]:
        raise not_allowed("only an admin makes a slice; `egs slice request` asks for one", "Forbidden")
    request_slice(name, about)


def _only_cluster() -> list[str]:
    names = [row["name"] for row in asking.pages("tables/clusters")]
    if len(names) != 1:
        raise wrong_use(f"say which clusters it spans with --cluster; you see {', '.join(names) or 'none'}")
    return names


def slice_parts(name: str) -> Row:
    found = _slice(name)
    namespaces = [one["namespace"] for one in found["namespaces"]]
    return {"slice": name, "files": None, "clusters": found["clusters"], "namespaces": namespaces}


def delete_slice(name: str) -> None:
    done = asking.send("DELETE", _WORKSPACE, {"workspaceName": name})
    report(f"Delete slice {name}", done["change"])


def add_member(name: str, mail: str, *, is_owner: bool) -> None:
    found = _slice(name)
    people = {"members": with_one(found["members"], mail)}
    people |= {"owners": with_one(found["owners"], mail)} if is_owner else {}
    if all(people[field] == found[field] for field in people):
        raise not_allowed(f"{mail} is in slice {name} already; nothing to change")
    _edited(name, people, f"Add {mail} to slice {name}")


def remove_member(name: str, mail: str) -> None:
    found = _slice(name)
    people = {
        field: [one for one in found[field] if one.lower() != mail.lower()] for field in ("members", "owners")
    }
    changed = {field: rest for field, rest in people.items() if rest != found[field]}
    if not changed:
        raise not_allowed(f"{mail} is not a member of slice {name}; nothing to change", "NotFound")
    _edited(name, changed, f"Remove {mail} from slice {name}")


def with_one(people: Sequence[str], mail: str) -> list[str]:
    """The addresses with that one added, unless it is there in any case."""
    return [*people, *([] if mail.lower() in {one.lower() for one in people} else [mail])]


def _slice(name: str) -> Row:
    found: Row = asking.get(_WORKSPACE, {"workspaceName": name})
    return found


def _edited(name: str, fields: Mapping[str, Any], subject: str) -> None:
    report(subject, asking.send("PUT", _WORKSPACE, {"workspaceName": name, **fields})["change"])


def decide(request: str, decision: Decision) -> None:
    """Show the request's terms and decide about exactly these."""
    shown = asking.get("gpr", {"gprId": named(request)})
    output.note(_asked(request, shown))
    bounds = {
        "gpus": decision.limit_gpus,
        "nodes": decision.limit_nodes,
        "extend": decision.limit_extend,
    }
    limit = {name: value for name, value in bounds.items() if value is not None}
    body = {
        "gprId": request,
        "decision": decision.decision,
        "limit": limit or None,
        "rule": decision.rule if decision.decision == "approve" else None,
        "specDigest": shown["specDigest"] or None,
        "reason": decision.reason,
        "notAfter": decision.not_after,
    }
    done = asking.send("POST", "approvals", body)
    report(f"{decision.decision.capitalize()} {request}", done["change"])


def _asked(request: str, shown: dict[str, Any]) -> str:
    """What the decision is about, in a sentence."""
    size = f"{shown['numberOfGPUNodes']} x {shown['numberOfGPUs']} GPUs"
    shapes = ", ".join(shown["gpuShapes"]) or "any shape"
    where = ", ".join(shown["preferredClusters"]) or "any cluster"
    lasting = f"{shown['exitDuration']} and {shown['extend']} of grace"
    return (
        f"{request} asks for {size}, {shapes}, in {where}, for {lasting}, with priority {shown['priority']}"
    )


def keys() -> list[Row]:
    """The keys that the caller may see."""
    return [_key(one) for one in asking.get("api-key/list")["apiKeys"]]


def _key(shown: Row) -> dict[str, Any]:
    """A row of `egs key list -o json`."""
    return {
        "name": shown["name"],
        "email": shown["email"],
        "role": shown["role"],
        "slices": list(shown.get("workspaces") or ()),
        "notAfter": shown.get("expiresAt") or None,
        "state": shown["state"],
        "description": shown["description"],
    }


def create_key(name: str, about: Mapping[str, Any]) -> str:
    """Make a key and return its text."""
    slices = about["slices"]
    if len(slices) > 1:
        raise wrong_use(
            "on a server a key is for one slice or the whole project; on a repository it may be for several"
        )
    body = {
        "name": name,
        "role": about["role"],
        "workspaceName": slices[0] if slices else None,
        "username": about["email"],
        "validity": last_day(about["expires"]),
        "description": about["description"],
    }
    done = asking.send("POST", "api-key", body)
    report(f"Create API key {name}", done["change"])
    output.note("it is shown only once, so store it safely")
    text: str = done["apiKey"]
    return text


def last_day(expires: str) -> str:
    """The last day (UTC) of a key that is valid that long from now. Raises Said."""
    found = _LASTING.fullmatch(expires)
    if found is None:
        raise wrong_use(f"--expires {expires}: write how long, for example 90d; on a server every key ends")
    try:
        return f"{clock.now() + int(found[1]) * _UNITS[found[2]]:%Y-%m-%d}"
    except OverflowError as error:
        raise wrong_use(f"--expires {expires}: no key lives that long; write for example 90d") from error


def revoke_key(name: str) -> None:
    report(f"Revoke API key {name}", asking.send("DELETE", "api-key", {"name": name})["change"])


def kubeconfig(slice_: str, cluster: str) -> str:
    done = asking.send("POST", "kube-config", {"workspaceName": slice_, "clusterName": cluster})
    text: str = done["kubeConfig"]
    return text
