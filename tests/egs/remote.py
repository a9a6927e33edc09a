"""Runs one `egs` command line against a real server, or on the repository behind it, as a person would type it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from egs import cli
from egs.modes import Here
from reconciler.cli import register
from tests.support.portal import KEYS, Site

INSTALLED = [register]
RUNNING = ("workloads", "workload", "gpus", "gpu", "alerts", "alert")
"""What is looked at in clusters: on a repository in a copy of the controller's simulations."""
CLIENT_ALONE: list[cli.Register] = []


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """The answer as data."""
        assert self.code in (0, 1), self.err
        return json.loads(self.out)


@dataclass
class Shell:
    """Somebody at a terminal, in an empty folder, with a context file of their own."""

    site: Site
    url: str
    folder: Path
    capsys: pytest.CaptureFixture[str]
    installed: list[cli.Register] = field(default_factory=lambda: list(INSTALLED))

    def __call__(self, *words: str, env: Mapping[str, str] | None = None) -> Done:
        """Run a line as it is typed."""
        self.capsys.readouterr()
        environ = {"EGS_CONFIG": str(self.folder / "config.yaml"), **(env or {})}
        code = cli.run(words, self.installed, Here(environ, self.folder, bool(self.installed)))
        out, err = self.capsys.readouterr()
        return Done(code, out, err)

    def on_server(self, line: str, *more: str, who: str = "ada-owner") -> Done:
        """Run it for the server, with the API key of that name; `more` are words with blanks in them."""
        return self(*line.split(), *more, env={"EGS_SERVER": self.url, "EGS_API_KEY": KEYS[who]})

    def on_repository(self, line: str, *more: str) -> Done:
        """Run it on the repository, at the instant of its newest status; `more` are words with blanks in them."""
        words = tuple(line.split())
        at = self.site.view.facts.at.strftime("%Y-%m-%dT%H:%M:%SZ")
        is_timeless = words[:2] in {("get", "events"), ("get", "problems")} or words[0] == "blame"
        now = () if is_timeless else ("--now", at)
        looks = words[0] in ("top", "diagnose") or words[:2] in {("get", kind) for kind in RUNNING}
        state = ("--state", str(self.site.settings.state)) if looks else ()
        return self(*words, *more, "--repo", str(self.site.repo), *now, *state)
