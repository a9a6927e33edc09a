"""Workloads that people file: Kubernetes objects on the nodes of a request. Also under the vendor's names.

Held by tests/egs/test_sdk_jobs.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from egs.asking.paging import pages
from egs.asking.wishes import JobTerms, gpr_body
from egs.calling import API, Ask, call
from egs.data.jobs import DeployedJob, Job
from egs.data.records import Change, Items, Named, each, of
from egs.exceptions import BadParameters, ResourceNotFound
from egs.sessions import AuthenticatedSession
from egs.steps import Script

WORKLOADS = f"{API}/workloads"
Manifests = str | Path | Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""A YAML text, a YAML file, one object, or several."""


def deploy_job(  # noqa: PLR0913 - each is a choice of the caller
    name: str,
    workspace_name: str,
    manifests: str | Path | Mapping[str, Any] | Sequence[Mapping[str, Any]],
    authenticated_session: AuthenticatedSession | None = None,
    *,
    request_id: str | None = None,
    namespace: str | None = None,
    dry_run: bool = False,
    **terms: Unpack[JobTerms],
) -> Script[DeployedJob]:
    """Run Kubernetes objects on GPU nodes: files a request and what runs on it in one change.

    `manifests`: a YAML text with one or more documents, a `pathlib.Path` of such a file, one object, or several. They
    are applied when the request starts, and removed when its lease ends. Terms of the request are those of
    `request_gpu` by keyword; what is left out comes from the template that the workspace is bound to. With `request_id`
    they run on a request that exists. `dry_run` writes nothing: `.text` has the files.

    Raises:
        BadParameters: an argument or an object is not valid; the message says what would be.
        Conflict: the workspace has a workload or a request of that name.
        ResourceNotFound: there is no such workspace or request.
        Unauthorized: the caller may not file workloads for that workspace.

    Example:
        >>> text = "{apiVersion: batch/v1, kind: Job, metadata: {name: train}, spec: {template: {spec: {}}}}"
        >>> job = egs.deploy_job("finetune", "vision", text, auth, node_count=1, gpu_per_node_count=8,
        ...                      exit_duration="1h")
        >>> job.name, job.request_name, job.change.way
        ('vision/finetune', 'vision/finetune', 'pushed')
    """
    body: dict[str, Any] = {"name": name, "sliceName": workspace_name, "manifests": _wire(manifests)}
    if terms or request_id is None:
        body["gprDetails"] = gpr_body(terms, "deploy_job")
    body |= {name: value for name, value in (("gprId", request_id), ("namespace", namespace)) if value}
    body |= {"dryRun": True} if dry_run else {}
    return _deployed(Ask("POST", WORKLOADS, body=body), authenticated_session)


def _deployed(ask: Ask, session: AuthenticatedSession | None) -> Script[DeployedJob]:
    return of(DeployedJob, (yield from call(session, ask)))


def _wire(manifests: Manifests) -> str | list[Mapping[str, Any]]:
    if isinstance(manifests, Path):
        return manifests.read_text(encoding="utf-8")
    if isinstance(manifests, Mapping):
        return [manifests]
    return manifests if isinstance(manifests, str) else list(manifests)


def jobs(
    workspace_name: str | None = None, authenticated_session: AuthenticatedSession | None = None
) -> Script[Items[Job]]:
    """Workloads that were filed, running or not, by workspace and name.

    Example:
        >>> [(job.name, job.phase) for job in egs.jobs("vision", auth)]
        [...]
    """
    rows = yield from pages(authenticated_session, f"{API}/tables/jobs", {"sliceName": workspace_name})
    return each(Job)(rows)


def job(name: str, authenticated_session: AuthenticatedSession | None = None) -> Script[Job]:
    """One of them, with its latest events; `name` is workspace/name.

    Raises ResourceNotFound: there is none of that name, or the caller may not see it.
    """
    return of(Job, (yield from call(authenticated_session, Ask("GET", f"{API}/tables/job", {"name": name}))))


def delete_job(name: str, authenticated_session: AuthenticatedSession | None = None) -> Script[Change]:
    """Delete a workload: its objects are removed, except PersistentVolumeClaims. Its request stays.

    Raises:
        ResourceNotFound: there is none of that name, or the caller may not see it.
        Unauthorized: the caller may not change it.
    """
    data = yield from call(authenticated_session, Ask("DELETE", WORKLOADS, {"name": name}))
    return of(Change, data.get("change"))


# -- the vendor's names ------------------------------------------------------------------------------------------------


def create_workload_placement_from_manifest(
    workspace_name: str,
    workload_name: str,
    cluster_names: Sequence[str],
    manifest: str,
    authenticated_session: AuthenticatedSession | None = None,
) -> Script[str]:
    """Run the objects of a YAML text in one of these clusters, as `deploy_job`; returns workspace/name.

    The request's size and duration come from the template that the workspace is bound to.

    Raises BadParameters: the workspace has no such template, or an object is not valid.
    """
    return _placed(deploy_job(
        workload_name, workspace_name, manifest, authenticated_session, preferred_clusters=cluster_names
    ))  # fmt: skip


def _placed(script: Script[DeployedJob]) -> Script[str]:
    done = yield from script
    return Named(done.name, done.change)


def list_workload_placements(authenticated_session: AuthenticatedSession | None = None) -> Script[Items[Job]]:
    """All workloads that the caller may see, as `jobs`.

    Example:
        >>> egs.list_workload_placements(auth)
        [...]
    """
    return jobs(None, authenticated_session)


def list_workload_placements_by_workspace(
    workspace_name: str, authenticated_session: AuthenticatedSession | None = None
) -> Script[Items[Job]]:
    """Those of a workspace, as `jobs`.

    Example:
        >>> egs.list_workload_placements_by_workspace("vision", auth)
        [...]
    """
    return jobs(workspace_name, authenticated_session)


def get_workload_placement(
    workload_name: str, authenticated_session: AuthenticatedSession | None = None
) -> Script[Job]:
    """One workload, as `job`; the workspace may be left out of the name if it is the only one of that name."""
    name = yield from _full(workload_name, authenticated_session)
    return (yield from job(name, authenticated_session))


def delete_workload_placement(
    workload_name: str, authenticated_session: AuthenticatedSession | None = None
) -> Script[Change]:
    """Delete a workload, as `delete_job`; the workspace may be left out as in `get_workload_placement`."""
    name = yield from _full(workload_name, authenticated_session)
    return (yield from delete_job(name, authenticated_session))


def _full(name: str, session: AuthenticatedSession | None) -> Script[str]:
    """workspace/name. Raises ResourceNotFound, or BadParameters if several workspaces have it."""
    if "/" in name:
        return name
    found = [
        f"{one.workspace_name}/{one.name}" for one in (yield from jobs(None, session)) if one.name == name
    ]
    if not found:
        raise ResourceNotFound(f"there is no workload {name}, or you may not see it", "workload", name)
    if len(found) > 1:
        raise BadParameters(f"workload_name: {name} is any of {', '.join(found)}; write one of these")
    return found[0]
