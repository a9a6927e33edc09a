"""Options of trust and forge, the same in every process that has them, and the settings made from them."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args
from urllib.parse import urlsplit

import typer

from reconciler.model.evidence import Level
from reconciler.settings import ForgeAddress, Trust
from reconciler.store.git.remote_address import is_remote
from schemas.errors import UserError

log = logging.getLogger(__name__)

ForgeKind = Literal["github", "gitlab", "gitea"]


def option(flag: str, variable: str, text: str) -> Any:
    """An option that is also read from a variable, and whose text says what happens without it."""
    return typer.Option(flag, envvar=variable, help=text, show_default=False)


Verify = Annotated[
    Level | None,
    option(
        "--verify",
        "EGS_VERIFY",
        "Evidence that a change on main needs before it counts: a signature, the forge's record, or both. "
        "Default: none for a folder; required for a remote repository.",
    ),
]
Folder = Annotated[
    Path | None,
    option(
        "--trust",
        "EGS_TRUST",
        "Folder with allowed_signers, revoked_keys and gpg/: keys kept outside the repository.",
    ),
]
OwnKey = Annotated[
    Path | None,
    option(
        "--key", "EGS_KEY", "Private ed25519 key with which this process signs; without it nothing is signed."
    ),
]
Kind = Annotated[
    ForgeKind | None,
    option(
        "--forge", "EGS_FORGE", "The forge that hosts the repository. Detected on github.com and gitlab.com."
    ),
]
Api = Annotated[
    str,
    option(
        "--forge-api",
        "EGS_FORGE_API",
        "URL of the forge's API. Default: that forge's usual path on the repository's host.",
    ),
]
Repository = Annotated[
    str,
    option(
        "--forge-repository",
        "EGS_FORGE_REPOSITORY",
        "OWNER/NAME on the forge. Default: the path in the repository's URL.",
    ),
]
Token = Annotated[
    Path | None,
    option(
        "--forge-token",
        "EGS_FORGE_TOKEN_FILE",
        "File with the token for the forge's API, read again at every call.",
    ),
]

_PUBLIC: Mapping[str, ForgeKind] = {"github.com": "github", "gitlab.com": "gitlab"}
_API: Mapping[ForgeKind, str] = {"github": "/api/v3", "gitlab": "/api/v4", "gitea": "/api/v1"}
_SSH_SHORT = re.compile(r"[^/@]+@(?P<host>[^/:]+):(?P<path>.+)")
_REPOSITORY = re.compile(r"[A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)+")
_HTTP_PORTS = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True)
class TrustOptions:
    verify: Verify = None
    trust: Folder = None
    key: OwnKey = None

    def settings(self, repo: str) -> Trust:
        """With absolute paths. UserError `WrongUse` if `repo` is remote and no level was given."""
        level = self.verify
        if level is None and is_remote(repo):
            raise _wrong(
                "it is not configured whose changes on main count; give --verify signature, forge or both, or "
                "--verify none: then everyone who can push counts as an admin (docs/explain/trust.md)"
            )
        if level == "none" and is_remote(repo):
            log.warning(
                "main is not verified: everyone who can push counts as an admin; see docs/explain/trust.md"
            )
        return Trust(level or "none", _absolute(self.trust), _absolute(self.key))


@dataclass(frozen=True, slots=True)
class ForgeOptions:
    """The forge options as given; empty or None: not given."""

    forge: Kind = None
    forge_api: Api = ""
    forge_repository: Repository = ""
    forge_token: Token = None


def forge_from_environment(environment: Mapping[str, str]) -> ForgeOptions:
    """Options from the variables EGS_FORGE…. UserError `WrongUse` for an unknown kind."""
    kind = environment.get("EGS_FORGE") or None
    if kind is not None and kind not in get_args(ForgeKind):
        raise _wrong(f"EGS_FORGE is {kind!r}; write {', '.join(get_args(ForgeKind))}")
    token = environment.get("EGS_FORGE_TOKEN_FILE")
    return ForgeOptions(
        cast("ForgeKind | None", kind),
        environment.get("EGS_FORGE_API", ""),
        environment.get("EGS_FORGE_REPOSITORY", ""),
        Path(token).expanduser() if token else None,
    )


def forge_of(given: ForgeOptions, remote: str, level: Level = "none") -> ForgeAddress | None:
    """The forge of that remote: from the options, the rest from its address.

    None if no option is given and the level does not need a forge. UserError `WrongUse` if options are
    missing.
    """
    if given == ForgeOptions() and level not in ("forge", "both"):
        return None
    scheme, host, path = _parts(remote)
    kind = given.forge or _PUBLIC.get(host.partition(":")[0])
    if kind is None:
        raise _wrong("the forge of the repository is unknown; give --forge github, gitlab or gitea")
    repository = (given.forge_repository or path).removesuffix(".git").strip("/")
    if not _REPOSITORY.fullmatch(repository):
        raise _wrong(
            "the repository's name on the forge is not in its address; give --forge-repository OWNER/NAME"
        )
    api = given.forge_api.rstrip("/") or _api(kind, scheme, host)
    if not re.fullmatch(r"https?://[^\s/@?#]+(/[^\s@?#]*)?", api):
        raise _wrong(
            "the address of the forge's API is unknown; give --forge-api https://forge.example.com"
            f"{_API[kind]}, without a login in it"
        )
    return ForgeAddress(kind, api, repository, _absolute(given.forge_token))


def known_forge(given: ForgeOptions, remote: str) -> ForgeAddress | None:
    """Like `forge_of`, for optional uses: None also if the address says too little."""
    _, host, _ = _parts(remote)
    told = given if given != ForgeOptions() else ForgeOptions(_PUBLIC.get(host.partition(":")[0]))
    try:
        return forge_of(told, remote)
    except UserError:
        if given != ForgeOptions():
            raise
        return None


def _api(kind: ForgeKind, scheme: str, host: str) -> str:
    if kind == "github" and (host == "github.com" or host.endswith(".ghe.com")):
        return f"https://api.{host}"
    return f"{scheme}://{host}{_API[kind]}" if host else ""


def _parts(remote: str) -> tuple[str, str, str]:
    """Scheme, host (with a non-default port) and path of the forge's web pages; all empty for a folder."""
    short = _SSH_SHORT.fullmatch(remote)
    if short is not None and "://" not in remote:
        return "https", short["host"].lower(), short["path"]
    if not is_remote(remote):
        return "", "", ""
    parts = urlsplit(remote)
    if parts.scheme not in _HTTP_PORTS:
        return "https", parts.hostname or "", parts.path.strip("/")
    try:
        port = parts.port or _HTTP_PORTS[parts.scheme]
    except ValueError:
        return "", "", ""  # the store reports what is wrong with the address
    usual = port == _HTTP_PORTS[parts.scheme]
    return parts.scheme, f"{parts.hostname}{'' if usual else f':{port}'}", parts.path.strip("/")


def _absolute(path: Path | None) -> Path | None:
    return None if path is None else path.expanduser().absolute()


def _wrong(sentence: str) -> UserError:
    return UserError(sentence, "WrongUse")
