"""A real OpenID provider on loopback: Dex, with the people of a test. `EGS_TEST_DEX` is the binary that .ci/run builds.

Each of PEOPLE is a connector of Dex that asks nothing; cy logs in with a password, by Dex's own form. Tests without
the binary are skipped, and say so.
"""

from __future__ import annotations

import base64
import contextlib
import html
import json
import os
import re
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import httpx
import pytest

from tests.support.kube import eventually
from tests.support.world import START

CLIENT, SECRET, CLI = "egs-portal", "portal-secret", "egs-cli"
PASSWORD = "password"
_HASHED = "$2a$10$2b2cU8CPhOTaGrs1HRQuAueS7JTT5ZHsHSzYiFPm1leZck7Mc8T4W"  # bcrypt of it


def _identity(name: str, groups: tuple[str, ...] = (), *, verified: bool = True) -> dict[str, Any]:
    email = f"{name}@example.com"
    return {
        "UserID": name, "Username": name.title(), "Email": email, "EmailVerified": verified, "Groups": list(groups),
    }  # fmt: skip


PEOPLE = {
    "ada": _identity("ada"),
    "bo": _identity("bo", ("everybody",)),
    "olga": _identity("olga", ("readers",)),
    "gus": _identity("gus", ("everybody", "nlp-team")),
    "ann": _identity("ann", ("readers",)),
    "own": _identity("own", ("keepers",)),
    "nobody": _identity("nobody"),
    "eve": _identity("eve", ("nlp-team",), verified=False),
}
"""ada, bo and olga are listed in the manifests; nobody has verified eve's address."""


@dataclass
class OpenId:
    """The provider; `restart` gives it other signing keys."""

    binary: str
    folder: Path
    redirects: tuple[str, ...]
    valid: str = "1h"
    port: int = 0
    _process: subprocess.Popen[bytes] | None = None

    @property
    def issuer(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}/dex"

    def start(self) -> None:
        """Begin, with new keys; returns when it answers."""
        if not self.port:
            with socket.socket() as one:
                one.bind(("127.0.0.1", 0))
                self.port = int(one.getsockname()[1])
        password = {"email": "cy@example.com", "username": "Cy", "userID": "cy"}
        hashed = base64.b64encode(_HASHED.encode()).decode()
        clients = [
            {"id": CLIENT, "secret": SECRET, "name": "portal", "redirectURIs": list(self.redirects)},
            {"id": CLI, "name": "egs login", "public": True},
            {"id": "other", "secret": SECRET, "name": "another", "redirectURIs": list(self.redirects)},
        ]
        given = {
            "Issuer": self.issuer, "Valid": self.valid, "Now": START.isoformat(), "Clients": clients,
            "People": PEOPLE, "Passwords": [{**password, "hash": hashed}],
        }  # fmt: skip
        file = self.folder / "provider.json"
        file.write_text(json.dumps(given))
        self._process = subprocess.Popen(
            [self.binary, f"127.0.0.1:{self.port}", str(file)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=(self.folder / "provider.log").open("wb"),
        )
        eventually(self._answers, "the identity provider answers")

    def _answers(self) -> bool:
        with contextlib.suppress(httpx.HTTPError):
            return httpx.get(f"{self.issuer}/.well-known/openid-configuration", timeout=60).status_code == 200
        return False

    def stop(self) -> None:
        """End it; its sessions and keys are gone."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait()

    def restart(self) -> None:
        """The same at the same address, with other keys."""
        self.stop()
        self.start()

    def authorise(self, browser: httpx.Client, url: str, who: str) -> httpx.Response:
        """What the portal's callback is to be asked: the provider's last redirect, not followed."""
        parts = urlsplit(url)
        path = f"{parts.path}/{who if who in PEOPLE else 'local'}"
        answer = browser.get(urlunsplit(parts._replace(path=path)))
        for _ in range(10):
            if answer.is_redirect and not answer.headers["Location"].startswith(self.issuer):
                target = answer.headers["Location"]
                if urlsplit(target).netloc and urlsplit(target).port != self.port:
                    return answer
            if answer.is_redirect:
                answer = browser.get(str(answer.url.join(answer.headers["Location"])))
            else:
                form = re.search(r'<form[^>]*action="([^"]*)"', answer.text)
                assert form is not None, answer.text[:2000]
                target = str(answer.url.join(html.unescape(form.group(1))))
                answer = browser.post(target, data={"login": f"{who}@example.com", "password": PASSWORD})
        raise AssertionError("the provider goes round in circles")

    def by_device(self, who: str) -> str:
        """An ID token as `egs login` gets it: by a code that somebody types into a browser."""
        with httpx.Client(follow_redirects=True, timeout=60) as browser:
            begun = browser.post(
                f"{self.issuer}/device/code", data={"client_id": CLI, "scope": "openid profile email groups"}
            ).json()
            self.confirm(begun["verification_uri"], begun["user_code"], who)
            answer = browser.post(
                f"{self.issuer}/device/token",
                data={
                    "device_code": begun["device_code"],
                    "grant_type": "urn:ietf:params:oauth:grant-type:device_code",
                },
            ).json()
            token: str = answer["id_token"]
            return token

    def confirm(self, address: str, code: str, who: str) -> None:
        """Somebody opens that address in a browser, types the code, and is who."""
        with httpx.Client(follow_redirects=True, timeout=60) as browser:
            page = browser.get(address)
            form = re.search(r'<form[^>]*action="([^"]*)"', page.text)
            assert form is not None
            action = str(page.url.join(html.unescape(form.group(1))))
            picked = browser.post(action, data={"user_code": code}, follow_redirects=False)
            target = urlsplit(str(page.url.join(picked.headers["Location"])))
            browser.get(urlunsplit(target._replace(path=f"{target.path}/{who}")))


@contextlib.contextmanager
def openid(folder: Path, *redirects: str) -> Iterator[OpenId]:
    """Runs until the end of the block; skips without the binary."""
    binary = os.environ.get("EGS_TEST_DEX")
    if not binary:
        pytest.skip("needs an OpenID provider: set EGS_TEST_DEX to the binary that .ci/run builds")
    found = OpenId(binary, folder, redirects)
    found.start()
    try:
        yield found
    finally:
        found.stop()


def query_of(url: str) -> dict[str, str]:
    """The parameters of an address."""
    return dict(parse_qsl(urlsplit(url).query))
