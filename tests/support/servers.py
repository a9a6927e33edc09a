"""Real servers that ask who is there: a certificate authority for https, an sshd with keys of its own.

`authority(folder)` makes the certificates, `repos.serve(…, tls=…)` serves with them; `sshd(folder)` starts OpenSSH's
server on loopback, for the user that runs the tests.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SSHD = shutil.which("sshd") or (path if Path(path := "/usr/sbin/sshd").exists() else None)

_PATIENCE_S = 60.0


@dataclass(frozen=True)
class Authority:
    """A certificate authority, and a server of 127.0.0.1 that it vouches for."""

    ca: Path
    tls: ssl.SSLContext


def authority(folder: Path) -> Authority:
    """Made in the folder by the command `openssl`."""
    folder.mkdir(parents=True, exist_ok=True)
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    _run(
        folder,
        "openssl",
        "req",
        "-x509",
        *key,
        "-subj",
        "/CN=Test authority",
        "-keyout",
        "ca.key",
        "-out",
        "ca.crt",
    )
    _run(
        folder, "openssl", "req", *key[:-2], "-subj", "/CN=git", "-keyout", "server.key", "-out", "server.csr"
    )
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    made = ("-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names")
    _run(folder, "openssl", "x509", "-req", "-in", "server.csr", *made, "-out", "server.crt")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "server.crt", folder / "server.key")
    return Authority(folder / "ca.crt", tls)


@dataclass(frozen=True)
class Sshd:
    """A running server: `url` stands for the machine's root folder; the key opens it, the line is its own."""

    url: str
    key: Path
    known_hosts: Path
    port: int
    authorized_keys: Path


@contextlib.contextmanager
def sshd(folder: Path) -> Iterator[Sshd]:
    """Runs until the end of the block."""
    assert SSHD is not None
    folder.mkdir(parents=True, exist_ok=True)
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(
            mode=0o755, exist_ok=True
        )  # where it locks itself in; its path cannot be chosen
    host, key = new_key(folder / "host"), new_key(folder / "key")
    allowed = folder / "authorized_keys"
    allowed.write_text(key.with_suffix(".pub").read_text())
    port = _free_port()
    (folder / "config").write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {host}\nAuthorizedKeysFile {allowed}\nPidFile none\n"
        "UsePAM no\nStrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nUseDNS no\n"
        "PermitRootLogin prohibit-password\nMaxStartups 100\nAllowAgentForwarding no\nPermitUserRC no\n"
        "KexAlgorithms curve25519-sha256\n"  # the default takes a tenth of a second
        "AcceptEnv GIT_PROTOCOL\n"  # as git's manual says, for its protocol 2
        f"SetEnv HOME={folder}\n"  # bash runs ~/.bashrc for each connection: it takes time, and may write
    )
    known = folder / "known_hosts"
    known.write_text(f"[127.0.0.1]:{port} {host.with_suffix('.pub').read_text()}")
    with (folder / "log").open("wb") as log:
        command = [SSHD, "-D", "-e", "-f", str(folder / "config")]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            _await(process, port, folder / "log")
            yield Sshd(f"ssh://{getpass.getuser()}@127.0.0.1:{port}", key, known, port, allowed)
        finally:
            process.terminate()
            process.wait()


def new_key(path: Path) -> Path:
    """A private key, and its public half beside it."""
    _run(path.parent, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", str(path))
    return path


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _await(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.02)
    raise AssertionError(f"sshd did not start: {log.read_text()}")


def _run(folder: Path, *command: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
