"""A part's keys: the trust folder, its own signing key, the forge's token. Pure."""

from __future__ import annotations

from dataclasses import replace

from reconciler.clusters.kubernetes.api.api_client import Json
from reconciler.deploying.install_values import Values
from reconciler.deploying.part_pods import SECRETS, Program

SIGNERS, REVOKED = "allowed_signers", "revoked_keys"
READABLE = 0o444
"""Public keys are not secret."""


def signing(run: Program, secret: str) -> Program:
    """With its signing key mounted; unchanged without a Secret."""
    if not secret:
        return run
    variables = {**run.variables, "EGS_KEY": f"{SECRETS}/signing/ssh-privatekey"}
    return replace(run, mounts={**run.mounts, "signing": secret}, variables=variables)


def keyed(run: Program, values: Values, secret: str) -> Program:
    """With its signing key and the trust folder mounted."""
    run, trust = signing(run, secret), values.trust
    variables = {"EGS_VERIFY": trust.level}
    if not trust.signers:
        return replace(run, variables={**run.variables, **variables})
    return replace(
        run,
        folders={**run.folders, "trust": _folder(values)},
        variables={**run.variables, **variables, "EGS_TRUST": f"{SECRETS}/trust"},
    )


def with_forge(run: Program, values: Values) -> Program:
    """With the forge's address and credentials."""
    forge = values.forge
    said = {"EGS_FORGE": forge.kind, "EGS_FORGE_API": forge.api, "EGS_FORGE_REPOSITORY": forge.repository}
    variables = {**run.variables, **{name: value for name, value in said.items() if value}}
    if not forge.secret:
        return replace(run, variables=variables)
    variables["EGS_FORGE_TOKEN_FILE"] = f"{SECRETS}/forge/token"
    return replace(run, mounts={**run.mounts, "forge": forge.secret}, variables=variables)


def _folder(values: Values) -> Json:
    """The trust folder; the ConfigMap may lack revoked keys, and has no subfolders."""
    name = values.trust.signers
    open_pgp = [{"key": key, "path": f"gpg/{key}"} for key in values.trust.open_pgp]
    wanted = {"name": name, "items": [{"key": SIGNERS, "path": SIGNERS}, *open_pgp]}
    more = {"name": name, "optional": True, "items": [{"key": REVOKED, "path": REVOKED}]}
    return {"projected": {"defaultMode": READABLE, "sources": [{"configMap": wanted}, {"configMap": more}]}}
