"""What an operator can turn of the portal, read once at the start. Each has a unit, a default and a reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from portal.http.rate_limits import Rates
from reconciler.settings import Settings


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """Settings of logging in through an OpenID provider; docs/login.md explains each."""

    issuer: str
    """Its address, exactly as it calls itself; everything else is read from there."""

    client_id: str
    """What the provider calls this portal."""

    client_secret: Path | None = None
    """File with the client's secret; None: a public client, which PKCE alone protects."""

    cli_client_id: str = ""
    """What the provider calls `egs login`, a public client with the device flow; empty: the same as the portal."""

    scopes: str = "openid profile email groups"
    """What is asked of the provider; some give groups without the scope of that name, and refuse it."""

    groups_claim: str = "groups"
    """Where an ID token has the groups; with dots the way into objects, as `realm_access.roles`."""

    ca: Path | None = None
    """File with certificates of who vouches for the provider; None: the system's."""


@dataclass(frozen=True, slots=True)
class PortalSettings:
    """Settings of one portal; docs/api.md explains each."""

    base: Settings
    """What it has in common with a controller: repository, state, branches, poll, trust, forge, kubeconfigs."""

    listen: str = "127.0.0.1:8080"
    """HOST:PORT; behind a proxy with TLS wherever others can reach it."""

    public_url: str = ""
    """How people reach it, without a path: for addresses in answers and for logging in; empty: not from outside."""

    session_secret: Path | None = None
    """File with at least 32 bytes that sign sessions, the same for all replicas; None: one of this process alone."""

    hook_secrets: Path | None = None
    """File with the secrets of webhooks, one a line; None: webhooks are off, and news come with the poll."""

    pushes_per_minute: int | None = None
    """Pushes a minute on a hosted forge; what would wait longer is answered `accepted`. None: no bound."""

    trusts_proxy: str = ""
    """Addresses of proxies whose X-Forwarded headers count, with commas between; empty: nobody's do."""

    provider: ProviderSettings | None = None
    """Through which people log in; None: with API keys alone."""

    rates: Rates = field(default_factory=Rates)
    """How often one key, person or address may ask one replica."""
