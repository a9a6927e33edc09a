"""What an operator can turn, read once at the start. Each has a unit, a default and a reason."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Literal

from reconciler.credentials import Credentials
from reconciler.model.evidence import Level


@dataclass(frozen=True, slots=True)
class Trust:
    """Whom this process believes, and how others know it; docs/security.md explains each."""

    level: Level = "none"
    """What has to be shown of every change on main before it counts."""

    folder: Path | None = None
    """Folder with allowed_signers, revoked_keys and gpg/: keys kept outside of the repository."""

    key: Path | None = None
    """Private ed25519 key with which this process signs what it commits; None: it signs nothing."""


@dataclass(frozen=True, slots=True)
class ForgeAddress:
    """Which forge has the repository."""

    kind: Literal["github", "gitlab", "gitea"]
    api: str
    """URL of its API: https://api.github.com, https://forge.example.com/api/v4, …"""

    repository: str
    """owner/name, or a GitLab project's whole path."""

    token: Path | None = None
    """File with the token, read anew at every call; None: only what everybody may read."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one controller; docs/operations.md explains each."""

    repo: str
    """Path or URL of the repository; people's branch is read, the status branch is written."""

    state: Path
    """Folder for the mirror, the document cache and embedded clusters; may be lost at any time."""

    credentials: Credentials | None = None
    """Files that open the repository, from the variables EGS_GIT_…; they are read anew at every call of git."""

    main_branch: str = "main"
    """Branch that people write."""

    status_branch: str = "egs/status"
    """Branch that this controller alone writes."""

    poll: timedelta = timedelta(seconds=30)
    """Longest pause between two looks at the repository; an instant that matters comes earlier."""

    pushes_per_minute: int | None = 2
    """Budget for pushes nobody waits for (forges advise against more than 6 a minute); None: no bound."""

    start_lead: timedelta = timedelta(seconds=10)
    """How long before the checks a start is decided, so that the push is done when they begin."""

    start_tolerance: timedelta = timedelta(minutes=1)
    """A hand-over this late still counts as on time; what is later is a slip with its cause."""

    overdue: timedelta = timedelta(minutes=2)
    """A superseded controller takes over when a committed start or end is this late."""

    pause: timedelta = timedelta(seconds=10)
    """What was fetched and seen longer ago is fetched and seen again before it is acted on: others may lead by now."""

    clock_tolerance: timedelta = timedelta(minutes=1)
    """How far clocks may be apart: by less nobody starts or ends later than what counts as on time."""

    believe_clock: bool = False
    """A person says that this machine's clock is right, whatever was committed or handed over by another."""

    lost_grace: timedelta = timedelta(minutes=1)
    """A node must be silent this long before its request gets another one: reboots of the API are short."""

    recheck_after: timedelta = timedelta(minutes=30)
    """A node that failed its checks before a start is tried again after this."""

    report_every: timedelta = timedelta(minutes=5)
    """How often an applier inside of a cluster reports when nothing changes; each report is a push."""

    project: str = "default"
    """Whose nodes and namespaces they are, as clusters that several projects share have it in their marks."""

    kubeconfigs: Path | None = None
    """Folder of the kubeconfigs that Cluster manifests name; None: no cluster is reached by a file."""

    namespace: str = "egs-system"
    """Namespace in every cluster, also the controller's own, for what belongs to no slice."""

    trust: Trust = Trust()
    """Whose word counts."""

    forge: ForgeAddress | None = None
    """The forge that has the repository; None: plain Git."""

    routes: Path | None = None
    """Folder of the addresses that routes of notifications name by secret; None: nobody is sent anything."""


DEFAULTS = Settings(repo="", state=Path())
"""Of those who read what another process decides by its own settings."""
