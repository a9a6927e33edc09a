"""`egs install` and `egs uninstall`: from what was typed to an installation, and back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import typer

from egs.commands import output
from egs.commands.output import Form
from reconciler.cli.answers.member_kubeconfig import Own
from reconciler.clock import SystemClock
from reconciler.clusters.kubernetes.api.api_client import Api
from reconciler.clusters.kubernetes.tenancy import member_tokens
from reconciler.deploying.install import budgets_of, install
from reconciler.deploying.install_values import Values, read
from reconciler.deploying.installed_objects import namespace as namespace_of
from reconciler.deploying.installed_objects import objects
from reconciler.deploying.part_names import Place
from reconciler.deploying.uninstall import helms, look, uninstall
from reconciler.sources.command_errors import NotAllowed, WrongUse
from schemas.reading.strict_yaml import load
from schemas.reading.yaml_text import dump

__all__ = ["InstallOptions", "Own", "image_of", "put_in", "show", "take_out"]


@dataclass(frozen=True, slots=True)
class InstallOptions:
    repositories: tuple[str, ...]
    role: str | None
    cluster: str | None
    image: str | None
    git_secret: str | None
    verify: str | None
    file: Path | None


def show(asked: InstallOptions, name: str, form: Form) -> None:
    """Prints the objects; contacts no cluster."""
    place = _place(name)
    found = [namespace_of(place), *objects(_values(asked), place)]
    if form is Form.YAML:
        output.text("---\n".join(map(dump, found)).rstrip("\n"))
    elif form is Form.JSON:
        output.data(found, form)
    else:
        rows = [(item["kind"], item["metadata"]["name"]) for item in found]
        output.table(("KIND", "NAME"), rows, "nothing would be made")


def put_in(asked: InstallOptions, name: str, own: Own, form: Form) -> None:
    values, place = _values(asked), _place(name)
    api = _connected(own)
    steps = list(install(api, values, replace(place, budgets=budgets_of(api))))
    if form is not Form.TABLE:
        output.data([step._asdict() for step in steps], form)
        return
    output.table(("OBJECT", "DONE"), steps, "nothing to do")
    output.note(f"see it start with: kubectl -n {place.namespace} get pods")
    output.note(
        "clusters are observed until their documents say mode: manage; look at `egs plan` and `egs diff` first"
    )


def take_out(projects: tuple[str, ...], name: str, own: Own, *, is_sure: bool, force: bool) -> None:
    api = _connected(own)
    place = replace(_place(name), budgets=budgets_of(api))
    if not projects:
        projects = look(api).projects
        if len(projects) > 1:
            raise WrongUse(
                f"several projects share this cluster ({', '.join(projects)}); name yours with --project"
            )
    if not is_sure:
        about = f"of project {', '.join(projects)} " if projects else ""
        sentence = (
            f"This takes marks, slices and admission objects {about}out of this cluster, then {name} itself. "
            "Namespaces that were made for slices go with all that is in them."
        )
        if not typer.confirm(f"{sentence} Go on?", err=True):
            raise NotAllowed("nothing was removed")
    is_there = False
    for line in uninstall(api, place, projects, SystemClock(), force=force):
        is_there = True
        output.text(line)
    if not is_there:
        output.note("there was nothing to remove")
    if helms(api, place):
        output.note(f"Helm installed the rest; remove it with: helm uninstall -n {place.namespace} {name}")


def _place(name: str) -> Place:
    return Place(metadata.version("egs-gitops"), name)


def _connected(own: Own) -> Api:
    return member_tokens.connected(member_tokens.opened(own.kubeconfig, own.context), "of this kubeconfig")


def _values(asked: InstallOptions) -> Values:
    given = {} if asked.file is None else _from_file(asked.file)
    typed = {"repositories": list(asked.repositories), "role": asked.role, "cluster": asked.cluster}
    given |= {name: value for name, value in typed.items() if value}
    if asked.git_secret:
        given["git"] = {**given.get("git", {}), "secret": asked.git_secret}
    if asked.verify:
        given["trust"] = {**given.get("trust", {}), "level": asked.verify}
    if asked.image:
        given["image"] = {**given.get("image", {}), **image_of(asked.image)}
    return read(given)


def _from_file(path: Path) -> dict[str, Any]:
    try:
        found = load(path.read_bytes())
    except OSError as error:
        raise WrongUse(f"--values {path}: it cannot be read ({error.strerror})") from error
    if not isinstance(found, dict):
        raise WrongUse(f"--values {path}: it must be a map, like deploy/chart/values.yaml")
    return found


def image_of(text: str) -> dict[str, str]:
    """NAME[:TAG][@DIGEST]; a colon before the last slash is a registry's port."""
    name, _, digest = text.partition("@")
    folder, slash, last = name.rpartition("/")
    last, _, tag = last.partition(":")
    return {"repository": f"{folder}{slash}{last}", "tag": tag, "digest": digest}
