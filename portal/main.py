"""`egs-portal`: read the settings once, put the parts together, and serve until SIGTERM."""

from __future__ import annotations

import gc
import logging
import os
import sys
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
import uvicorn

from portal.compose import Portal, portal
from portal.http.rate_limits import Rate, Rates
from portal.settings import PortalSettings, ProviderSettings
from reconciler.bounded_http import address
from reconciler.clock import SystemClock
from reconciler.clusters.kubernetes.names import SYSTEM_NAMESPACE
from reconciler.credentials import from_environment
from reconciler.processes.process_options import (
    HookSecrets,
    Kubeconfigs,
    Namespace,
    Project,
    Repo,
    State,
    grouped,
)
from reconciler.processes.webhooks import secrets_of
from reconciler.settings import Settings
from reconciler.trust.trust_options import ForgeOptions, TrustOptions, forge_of, known_forge, option
from schemas.errors import EgsError, UserError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="The HTTP API of a repository.",
)

DEFAULT_STATE = Path("~/.local/state/egs-portal")
HOSTED_BUDGET = 6
"""Pushes per minute to a hosted forge, as forges advise; a server of one's own has no such limit."""
COLLECT = (50_000, 20, 100)
"""Thresholds of Python's garbage collector: a full collection over a large repository stalls every answer."""
KEEP_ALIVE_S = 75
"""Idle time of a connection; longer than a proxy's, so that the proxy never reuses a connection just closed."""
SWITCH_S = 0.0005
"""Longest time a thread computes while another one waits, so that answers do not wait for reader and writer."""
GRACE_S = 30
"""Time that running requests get to finish after SIGTERM."""
LOG = "%(asctime)s %(levelname)s %(name)s %(message)s"


@dataclass(frozen=True, slots=True)
class ProviderOptions:
    """Options of the OpenID login; docs/reference/api.md explains each."""

    oidc_issuer: Annotated[
        str,
        option(
            "--oidc-issuer",
            "EGS_OIDC_ISSUER",
            "Issuer of the OpenID provider through which people log in. Default: API keys only.",
        ),
    ] = ""
    oidc_client: Annotated[
        str,
        typer.Option(
            "--oidc-client", envvar="EGS_OIDC_CLIENT", help="Client id of this portal at the provider."
        ),
    ] = "egs"
    oidc_secret: Annotated[
        Path | None,
        option(
            "--oidc-secret",
            "EGS_OIDC_SECRET_FILE",
            "File with the client secret; without it the client is public and protected by PKCE.",
        ),
    ] = None
    oidc_cli_client: Annotated[
        str,
        option(
            "--oidc-cli-client",
            "EGS_OIDC_CLI_CLIENT",
            "Client id of `egs login` at the provider. Default: the portal's.",
        ),
    ] = ""
    oidc_scopes: Annotated[
        str,
        typer.Option("--oidc-scopes", envvar="EGS_OIDC_SCOPES", help="Scopes to request from the provider."),
    ] = "openid profile email groups"
    oidc_groups: Annotated[
        str,
        typer.Option(
            "--oidc-groups",
            envvar="EGS_OIDC_GROUPS",
            help="Claim that lists the groups; dots lead into objects.",
        ),
    ] = "groups"
    oidc_ca: Annotated[
        Path | None,
        option("--oidc-ca", "EGS_OIDC_CA_FILE", "CA certificates for the provider. Default: the system's."),
    ] = None

    def settings(self) -> ProviderSettings | None:
        """None: logging in is off."""
        if not self.oidc_issuer:
            return None
        return ProviderSettings(
            issuer=self.oidc_issuer,
            client_id=self.oidc_client,
            client_secret=self.oidc_secret,
            cli_client_id=self.oidc_cli_client,
            scopes=self.oidc_scopes,
            groups_claim=self.oidc_groups,
            ca=self.oidc_ca,
        )


@dataclass(frozen=True, slots=True)
class Serving:
    """Options of the HTTP server; docs/reference/api.md explains each."""

    listen: Annotated[
        str, typer.Option("--listen", envvar="EGS_LISTEN", help="HOST:PORT, or :PORT for every address.")
    ] = "127.0.0.1:8080"
    public_url: Annotated[
        str,
        option(
            "--public-url",
            "EGS_PUBLIC_URL",
            "URL under which people reach it: https://egs.example.com. Needed for browser logins.",
        ),
    ] = ""
    session_secret: Annotated[
        Path | None,
        option(
            "--session-secret",
            "EGS_SESSION_SECRET_FILE",
            "File with 32 bytes or more to sign sessions, the same for all replicas. Default: a new one.",
        ),
    ] = None
    trusts_proxy: Annotated[
        str,
        option(
            "--trusts-proxy",
            "EGS_TRUSTS_PROXY",
            "Comma-separated addresses of proxies whose X-Forwarded headers are trusted. Default: none.",
        ),
    ] = ""


MetricsFiles = Annotated[
    Path | None,
    option(
        "--metrics-files",
        "EGS_METRICS_FILES",
        "Folder with credentials and certificates that spec.metrics of Cluster manifests names. Default: none.",
    ),
]


@dataclass(frozen=True, slots=True)
class RateOptions:
    """Rate limits per key or person, per replica; docs/guides/login.md explains each."""

    reads_per_second: Annotated[
        float,
        typer.Option(
            "--reads-per-second",
            envvar="EGS_READS_PER_SECOND",
            min=0.1,
            help="Sustained reads and quotes per second of one key or person; bursts of four times as many.",
        ),
    ] = 50
    writes_per_second: Annotated[
        float,
        typer.Option(
            "--writes-per-second",
            envvar="EGS_WRITES_PER_SECOND",
            min=0.1,
            help="Sustained changes per second by one key or person; bursts of five times as many.",
        ),
    ] = 10

    def settings(self) -> Rates:
        """Unauthenticated requests keep the default."""
        reads, writes = self.reads_per_second, self.writes_per_second
        return Rates(Rate(reads, max(1, round(4 * reads))), Rate(writes, max(1, round(5 * writes))))


@app.command(
    epilog="Example: egs-portal --repo https://forge.example.com/fleet.git --verify none --listen :8080"
)
@grouped
def run(  # noqa: PLR0913 - one for each option
    repo: Repo,
    serving: Serving,
    provider: ProviderOptions,
    rates: RateOptions,
    trust: TrustOptions,
    forge: ForgeOptions,
    state: State = DEFAULT_STATE,
    poll: Annotated[
        int, typer.Option("--poll", min=1, max=300, help="Seconds between two polls of the repository.")
    ] = 5,
    pushes_per_minute: Annotated[
        int | None,
        typer.Option(
            "--pushes-per-minute",
            min=0,
            max=600,
            help="Pushes per minute; 0: no limit. Default: 6 on a hosted forge, else no limit.",
        ),
    ] = None,
    hook_secrets: HookSecrets = None,
    project: Project = "",
    kubeconfigs: Kubeconfigs = None,
    metrics_files: MetricsFiles = None,
    namespace: Namespace = SYSTEM_NAMESPACE,
) -> None:
    """Serve one repository until SIGTERM or Ctrl-C; pending changes are pushed before it exits."""
    if hook_secrets is not None:
        secrets_of(_text(hook_secrets))
    settled = trust.settings(repo)
    base = Settings(
        repo=repo,
        state=state.expanduser(),
        credentials=from_environment(os.environ),
        poll=timedelta(seconds=poll),
        project=project or "default",
        kubeconfigs=kubeconfigs,
        namespace=namespace,
        trust=settled,
        forge=forge_of(forge, repo, settled.level) or known_forge(forge, repo),
    )
    hosted = HOSTED_BUDGET if pushes_per_minute is None and base.forge is not None else pushes_per_minute
    settings = PortalSettings(
        base=base,
        listen=serving.listen,
        public_url=serving.public_url,
        session_secret=serving.session_secret,
        hook_secrets=hook_secrets,
        pushes_per_minute=hosted or None,
        trusts_proxy=serving.trusts_proxy,
        provider=provider.settings(),
        metrics_files=metrics_files,
        rates=rates.settings(),
    )
    host, port = address(settings.listen)
    sys.setswitchinterval(SWITCH_S)
    gc.set_threshold(*COLLECT)
    served = portal(settings, SystemClock())
    served.start()
    try:
        _Server(_config(settings, served, host, port), served).run()
    finally:
        served.stop()


def _config(settings: PortalSettings, served: Portal, host: str, port: int) -> uvicorn.Config:
    return uvicorn.Config(
        served.app,
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        proxy_headers=bool(settings.trusts_proxy),
        forwarded_allow_ips=settings.trusts_proxy or None,
        timeout_graceful_shutdown=GRACE_S,
        timeout_keep_alive=KEEP_ALIVE_S,
        limit_concurrency=MOST_CONNECTIONS,
    )


MOST_CONNECTIONS = 4000
"""Connections at a time; one more is answered 503."""


class _Server(uvicorn.Server):
    """Ends the streams when a signal comes: uvicorn would wait for them."""

    def __init__(self, config: uvicorn.Config, served: Portal) -> None:
        super().__init__(config)
        self._served = served

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._served.reader.end()
        super().handle_exit(sig, frame)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        text = f"{file} cannot be read ({type(error).__name__}); write one secret per line into it"
        raise UserError(text, "HookSecretMissing") from error


def main() -> None:
    """The console script `egs-portal`: exit 1 for a refusal, 2 for wrong use, 3 for a fault."""
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format=LOG)
    for talkative in ("httpx", "uvicorn.access"):
        logging.getLogger(talkative).setLevel(logging.WARNING)
    try:
        app()
    except EgsError as error:
        typer.echo(f"egs-portal: {error} ({error.reason})", err=True)
        sys.exit(2 if error.reason == "WrongUse" else 1 if isinstance(error, UserError) else 3)
