"""Settings of the portal, read once at the start. Each has a unit, a default and a reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from portal.http.rate_limits import Rates
from reconciler.settings import Settings


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """Settings of the OpenID login; docs/guides/login.md explains each."""

    issuer: str
    """The issuer URL, exactly as the provider states it; discovery gives everything else."""

    client_id: str
    """Client id of this portal at the provider."""

    client_secret: Path | None = None
    """File with the client secret; None: a public client, protected by PKCE alone."""

    cli_client_id: str = ""
    """Client id of `egs login`, a public client with the device flow; empty: the portal's."""

    scopes: str = "openid profile email groups"
    """Scopes to request; some providers give groups without a scope of that name, and refuse it."""

    groups_claim: str = "groups"
    """Claim that lists the groups; dots lead into objects, as in `realm_access.roles`."""

    ca: Path | None = None
    """File with CA certificates for the provider; None: the system's."""


@dataclass(frozen=True, slots=True)
class PortalSettings:
    """Settings of one portal; docs/reference/api.md explains each."""

    base: Settings
    """Shared with the controller: repository, state, branches, poll, trust, forge, kubeconfigs."""

    listen: str = "127.0.0.1:8080"
    """HOST:PORT; put it behind a proxy with TLS if others can reach it."""

    public_url: str = ""
    """Base URL for links and for logging in, with its path on that host, if any; empty: not reachable from outside."""

    session_secret: Path | None = None
    """File with at least 32 bytes to sign sessions, the same for all replicas; None: a secret of this process."""

    hook_secrets: Path | None = None
    """File with webhook secrets, one per line; None: webhooks are off, and changes are seen by polling."""

    pushes_per_minute: int | None = None
    """Pushes per minute on a hosted forge; a change that would wait longer is answered `accepted`. None: no limit."""

    trusts_proxy: str = ""
    """Comma-separated addresses of proxies whose X-Forwarded headers are trusted; empty: none."""

    session_life: timedelta = timedelta(hours=1)
    """How long a session lasts before the person shows a key, or logs in, again."""

    provider: ProviderSettings | None = None
    """The OpenID provider; None: API keys only."""

    metrics_files: Path | None = None
    """Folder with credentials and certificates that `spec.metrics` of clusters names; None: none are needed."""

    rates: Rates = field(default_factory=Rates)
    """Rate limits per key, person or address, for one replica."""
