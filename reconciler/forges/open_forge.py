"""Opens the forge of an address."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta

from reconciler.clock import Clock, SystemClock
from reconciler.forges.forge_cache import Remembering
from reconciler.forges.forge_http import Api
from reconciler.forges.forge_port import Forge
from reconciler.forges.gitea import Gitea
from reconciler.forges.github import GitHub
from reconciler.forges.gitlab import GitLab
from reconciler.model.clock_reading import Heard
from reconciler.settings import ForgeAddress

_DRIVERS: Mapping[str, Callable[[Api, str], Forge]] = {"github": GitHub, "gitlab": GitLab, "gitea": Gitea}


def open_forge(
    address: ForgeAddress,
    clock: Clock | None = None,
    patience: timedelta | None = None,
    heard: Callable[[Heard], None] = lambda _: None,
) -> Forge:
    """The driver; makes no call yet. Raises UserError `BadForge` for an invalid address.

    `patience` limits the time of calls, see `Api`; `heard` is called with the forge's clock. Not thread-safe:
    each thread opens its own.
    """
    time = clock or SystemClock()
    api = Api(address.api, address.token, time, patience, heard)
    return Remembering(_DRIVERS[address.kind](api, address.repository), time)
