"""`egs codeowners`: the policy as a forge's CODEOWNERS and branch rules, and whether both are in force.

They show people early whom to ask. The check and the controller decide what counts (docs/explain/security.md).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from egs.commands import output
from egs.commands.output import Form
from reconciler.changes.change import Change, Means
from reconciler.changes.publish import aimed, publish
from reconciler.forges.branch_protection import CHECK
from reconciler.forges.open_forge import open_forge
from reconciler.model.facts import Wanted
from reconciler.queries.state import State, clock, read_state
from reconciler.settings import ForgeAddress
from reconciler.sources.command_errors import NotAllowed, WrongUse
from reconciler.sources.folder import Folder
from reconciler.sources.forge_choice import forge_address
from reconciler.sources.open_source import opened
from reconciler.sources.source import MAIN, STATUS, Source
from reconciler.trust.trust_options import ForgeKind
from schemas.documents.base import Person
from schemas.documents.slice import SliceSpec

PLACES: Mapping[ForgeKind, str] = {
    "github": ".github/CODEOWNERS",
    "gitlab": ".gitlab/CODEOWNERS",
    "gitea": ".gitea/CODEOWNERS",
}

_HEAD = """\
# Written by `egs codeowners` from project.yaml and the slices' files: change those, and run it again.
# Requests (slices/*/gprs) have no owners: members file and end them without a review, and {check} says who may.
# Nor have profiles (people), which are each person's own.
"""


def owners_text(kind: ForgeKind, wanted: Wanted) -> str:
    """CODEOWNERS: admins own all but requests and profiles; a slice's owners also own its file."""
    admins = wanted.project.admins
    lines = [*(_gitea_rows(wanted) if kind == "gitea" else _rows(wanted))]
    if not _names(kind, admins):
        raise NotAllowed(
            "the forge knows no admin, so CODEOWNERS would ask for no review; give forge: {login, id} to the admins "
            "in project.yaml"
        )
    body = "".join(f"{pattern} {' '.join(_names(kind, people))}".rstrip() + "\n" for pattern, people in lines)
    return _HEAD.format(check=CHECK) + body


def _rows(wanted: Wanted) -> Iterable[tuple[str, Iterable[Person]]]:
    """The last matching pattern counts; one without owners asks for no review."""
    admins = wanted.project.admins
    yield "*", admins
    yield "/slices/*/gprs/", ()
    yield "/people/", ()
    for name, spec in _with_files(wanted):
        if spec.owners:
            yield f"/slices/{name}/slice.yaml", (*spec.owners, *admins)


def _gitea_rows(wanted: Wanted) -> Iterable[tuple[str, Iterable[Person]]]:
    """Patterns are regular expressions for the whole path, and every match counts."""
    admins = wanted.project.admins
    yield r"project\\.yaml", admins
    yield "(clusters|templates|bindings|keys|requests|approvals)/.*", admins
    yield r"(\\.gitea|\\.forgejo|\\.github)/.*", admins
    for name, spec in _with_files(wanted):
        yield rf"slices/{name}/slice\\.yaml", (*spec.owners, *admins)


def _with_files(wanted: Wanted) -> list[tuple[str, SliceSpec]]:
    """Slices with a slice.yaml; the file of a requested slice would be an admin's."""
    asked = {name for name, space in wanted.workspaces.items() if not space.has_own_file}
    return [(name, spec) for name, spec in sorted(wanted.slices.items()) if name not in asked]


def _names(kind: ForgeKind, people: Iterable[Person]) -> list[str]:
    """Accounts, or addresses if the forge takes them, in the order of the files, each once."""
    found = [
        f"@{person.forge.login}" if person.forge is not None else person.email
        for person in people
        if person.forge is not None or kind != "gitea"
    ]
    return list(dict.fromkeys(found))


def rules(kind: ForgeKind, repository: str) -> list[dict[str, Any]]:
    """The calls of the forge's API, with bodies, with which an admin protects the branches."""
    match kind:
        case "github":
            bodies = (_github_main(), _github_machines())
            return [_call("POST", f"/repos/{repository}/rulesets", body) for body in bodies]
        case "gitlab":
            project = "/projects/" + repository.replace("/", "%2F")
            return [
                _call("POST", f"{project}/protected_branches", _GITLAB_MAIN),
                _call("POST", f"{project}/protected_branches", _GITLAB_MACHINES),
                _call("PUT", project, {"only_allow_merge_if_pipeline_succeeds": True}),
            ]
        case "gitea":
            path = f"/repos/{repository}/branch_protections"
            return [_call("POST", path, _GITEA_MAIN), _call("POST", path, _GITEA_MACHINES)]


def _call(method: str, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
    return {"method": method, "path": path, "body": dict(body)}


def _github_main() -> dict[str, Any]:
    pulls = {
        "required_approving_review_count": 0,  # most requests need none; CODEOWNERS says which files do
        "dismiss_stale_reviews_on_push": True,
        "require_code_owner_review": True,
        "require_last_push_approval": False,
        "required_review_thread_resolution": False,
    }
    checks = {
        "strict_required_status_checks_policy": False,
        "required_status_checks": [{"context": CHECK}],
    }
    kinds: list[dict[str, Any]] = [
        {"type": "deletion"},
        {"type": "non_fast_forward"},
        {"type": "pull_request", "parameters": pulls},
        {"type": "required_status_checks", "parameters": checks},
    ]
    return _github("egs: main", "~DEFAULT_BRANCH", kinds, [])


def _github_machines() -> dict[str, Any]:
    """Deploy keys of controller and agents may write there; for an App, put its number instead."""
    kinds = [{"type": "creation"}, {"type": "update"}, {"type": "deletion"}]
    bypass = [{"actor_id": None, "actor_type": "DeployKey", "bypass_mode": "always"}]
    return _github("egs: machines", "refs/heads/egs/**", kinds, bypass)


def _github(name: str, ref: str, kinds: list[dict[str, Any]], bypass: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "name": name,
        "target": "branch",
        "enforcement": "active",
        "conditions": {"ref_name": {"include": [ref], "exclude": []}},
        "rules": kinds,
        "bypass_actors": bypass,
    }


_GITLAB_MAIN = {
    "name": MAIN,
    "push_access_level": 0,
    "merge_access_level": 30,
    "allow_force_push": False,
    "code_owner_approval_required": True,
}
_GITLAB_MACHINES = {
    "name": "egs/*",
    "push_access_level": 40,
    "merge_access_level": 0,
    "allow_force_push": True,
}
_GITEA_MAIN = {
    "rule_name": MAIN,
    "enable_push": False,
    "enable_force_push": False,
    "enable_status_check": True,
    "status_check_contexts": [CHECK],
    "dismiss_stale_approvals": True,
    "block_on_official_review_requests": True,
}
_GITEA_MACHINES = {
    "rule_name": "egs/**",
    "enable_push": True,
    "enable_push_whitelist": True,
    "push_whitelist_deploy_keys": True,
    "enable_force_push": True,
    "enable_force_push_allowlist": True,
    "force_push_allowlist_deploy_keys": True,
}


def show(means: Means, kind: ForgeKind | None, now: str | None) -> None:
    with opened(means.repo) as source:
        state = read_state(source, clock(now, source))
        chosen = kind or _kind(source)
        text = owners_text(chosen, state.wanted)
    for mail in _unknown(chosen, state.wanted):
        output.note(f"{mail} has no account of the forge in the manifests, and is not asked for reviews")
    output.text(text.rstrip("\n"))


def write(means: Means, kind: ForgeKind | None) -> None:

    def build(state: State, base: str) -> Change:
        text = owners_text(chosen, state.wanted).encode()
        if _there(source, base, PLACES[chosen]) == text:
            raise NotAllowed(f"{PLACES[chosen]} says so already; nothing is changed")
        return Change({PLACES[chosen]: text}, "Bring CODEOWNERS up to date", "codeowners")

    with aimed(means) as source:
        chosen = kind or _kind(source)
        publish(source, means, build)


def show_rules(means: Means, kind: ForgeKind | None) -> None:
    with opened(means.repo) as source:
        chosen, address = kind or _kind(source), _address(source)
    calls = rules(chosen, "OWNER/NAME" if address is None else address.repository)
    output.text(json.dumps(calls, indent=2))


def check(means: Means, kind: ForgeKind | None, now: str | None, form: Form) -> int:
    """Whether all of that is in force; returns the exit code."""
    with opened(means.repo) as source:
        state = read_state(source, clock(now, source))
        chosen = kind or _kind(source)
        found = _lacking(source, state, chosen)
    if form is not Form.TABLE:
        output.data({"forge": chosen, "file": PLACES[chosen], "lacking": found}, form)
    else:
        output.table(
            ("LACKING",), [(sentence,) for sentence in found], "CODEOWNERS and branch rules are in force"
        )
    return 1 if found else 0


def _lacking(source: Source, state: State, kind: ForgeKind) -> list[str]:
    place = PLACES[kind]
    there = _there(source, source.commit_of(None), place)
    found = []
    if there is None:
        found.append(f"{place} is missing; `egs codeowners --write` writes it")
    elif there != owners_text(kind, state.wanted).encode():
        found.append(f"{place} differs from the manifests; `egs codeowners --write` updates it")
    address = _address(source)
    if address is None or address.token is None:
        found.append(
            "the forge was not asked: set EGS_FORGE_TOKEN_FILE, and EGS_FORGE if the address does not show the forge"
        )
        return found
    forge = open_forge(address)
    return [*found, *forge.protection(MAIN), *(_machines(forge.protection(STATUS)))]


def _machines(sentences: Iterable[str]) -> Iterable[str]:
    """What matters of these for the branch that the controller writes."""
    return (sentence for sentence in sentences if "may be deleted" in sentence)


def _there(source: Source, base: str, path: str) -> bytes | None:
    """The present file, in a folder that of the work tree."""
    if not isinstance(source, Folder):
        return source.store.read_path(base, path)
    file: Path = source.root / path
    return file.read_bytes() if file.is_file() and not file.is_symlink() else None


def _kind(source: Source) -> ForgeKind:
    address = _address(source)
    if address is None:
        raise WrongUse("the repository's forge is unknown; give --forge github, gitlab or gitea")
    return address.kind


def _address(source: Source) -> ForgeAddress | None:
    remote = source.upstream()
    return None if remote is None else forge_address(remote.address)


def _unknown(kind: ForgeKind, wanted: Wanted) -> list[str]:
    """People whom the forge cannot ask, because it takes no addresses."""
    people = [*wanted.project.admins, *(p for spec in wanted.slices.values() for p in spec.owners)]
    return sorted({p.email for p in people if p.forge is None and kind == "gitea"})
