"""An operator's settings, read once at the start. Each has a unit, a default and a reason."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Literal

from reconciler.credentials import Credentials
from reconciler.model.evidence import Level


@dataclass(frozen=True, slots=True)
class Trust:
    """Which changes this process trusts, and how it identifies itself; docs/explain/security.md explains each."""

    level: Level = "none"
    """Evidence that every change on main needs before it counts."""

    folder: Path | None = None
    """Folder with allowed_signers, revoked_keys and gpg/: keys kept outside the repository."""

    key: Path | None = None
    """Private ed25519 key with which this process signs its commits; None: it does not sign."""


@dataclass(frozen=True, slots=True)
class ForgeAddress:
    kind: Literal["github", "gitlab", "gitea"]
    api: str
    """URL of its API: https://api.github.com, https://forge.example.com/api/v4, …"""

    repository: str
    """owner/name, or a GitLab project's full path."""

    token: Path | None = None
    """File with the token, read again at every call; None: only what is public."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one controller; docs/reference/settings.md explains each."""

    repo: str
    """Path or URL of the repository: main is read, the status branch is written."""

    state: Path
    """Folder for the mirror, the document cache and embedded clusters; may be deleted at any time."""

    credentials: Credentials | None = None
    """Credential files of the repository, from the variables EGS_GIT_…; read again at every call of git."""

    main_branch: str = "main"
    """The branch that people write."""

    status_branch: str = "egs/status"
    """The branch that only this controller writes."""

    history_branch: str = "egs/history"
    """Beginning of the branches that keep old states of the status branch."""

    history: timedelta = timedelta(days=90)
    """How long states of the status branch are kept after its own history is left behind; 0: not at all."""

    history_bytes: int = 32_000_000
    """Contents of files, before compression, that a week's states may add; a busier fleet keeps fewer states."""

    poll: timedelta = timedelta(seconds=30)
    """Longest pause between two polls of the repository; scheduled actions come earlier."""

    pushes_per_minute: int | None = 2
    """Budget for non-urgent pushes (forges advise against more than 6 a minute); None: no limit."""

    start_lead: timedelta = timedelta(seconds=10)
    """How long before the checks a start is decided, so that the push is done when they begin."""

    start_tolerance: timedelta = timedelta(minutes=1)
    """A hand-over this late still counts as on time; a later one is a slip with its cause."""

    overdue: timedelta = timedelta(minutes=2)
    """A superseded controller takes over when a committed start or end is this late."""

    pause: timedelta = timedelta(seconds=10)
    """Data older than this is fetched and observed again before it is acted on: another controller may lead by now."""

    clock_tolerance: timedelta = timedelta(minutes=1)
    """Tolerated difference between clocks: below it, no start or end is later than what counts as on time."""

    believe_clock: bool = False
    """An operator confirms that this machine's clock is right, whatever others committed or handed over."""

    lost_grace: timedelta = timedelta(minutes=1)
    """How long a node must be silent before its request gets another one: API restarts are short."""

    recheck_after: timedelta = timedelta(minutes=30)
    """A node that failed its checks before a start is tried again after this."""

    report_every: timedelta = timedelta(minutes=5)
    """How often an applier inside a cluster reports without changes; each report is a push."""

    project: str = "default"
    """The project that owns the nodes and namespaces, as marked in clusters shared by several projects."""

    kubeconfigs: Path | None = None
    """Folder of the kubeconfigs named in Cluster manifests; None: no cluster is reached with a file."""

    namespace: str = "egs-system"
    """Namespace in every cluster, also the controller's own, for objects that belong to no slice."""

    trust: Trust = Trust()
    """Which changes and commits count."""

    forge: ForgeAddress | None = None
    """The repository's forge; None: plain Git."""

    routes: Path | None = None
    """Folder with the addresses that notification routes name by secret; None: no messages are sent."""

    metrics_files: Path | None = None
    """Folder with credentials that `spec.metrics` of clusters names; None: none are needed."""


DEFAULTS = Settings(repo="", state=Path())
"""For readers of what another process decides by its own settings."""
