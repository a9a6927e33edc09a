"""A server under a name that no resolver knows: a certificate made here, TLS on loopback, and a proxy that leads there.

`named(app, host)` gives the environment for a program that talks to `https://HOST`: HTTPS_PROXY, which is a CONNECT
proxy that leads every name to the server, and SSL_CERT_FILE, which trusts the certificate.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import uvicorn
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)


def certificate(folder: Path, host: str) -> tuple[Path, Path]:
    """Files of a certificate for that name, which signs itself, and of its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = datetime.now(UTC)  # noqa: TID251 - the programs under test read the machine's clock
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - DAY)
        .not_valid_after(now + DAY)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = folder / "server.pem", folder / "server.key"
    files[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return files


@contextlib.contextmanager
def named(app: Any, host: str, folder: Path) -> Iterator[dict[str, str]]:
    """The app under `https://HOST`; gives the environment in which a program finds it there."""
    cert, key = certificate(folder, host)
    with _listening() as server_socket, _listening() as proxy_socket:
        config = uvicorn.Config(
            app, log_level="warning", lifespan="off", ssl_certfile=str(cert), ssl_keyfile=str(key)
        )
        server = uvicorn.Server(config)
        serves = threading.Thread(target=server.run, args=([server_socket],), daemon=True)
        leads = threading.Thread(target=_lead, args=(proxy_socket, server_socket.getsockname()), daemon=True)
        serves.start()
        leads.start()
        try:
            while not server.started and serves.is_alive():
                serves.join(0.01)
            yield {
                "HTTPS_PROXY": f"http://127.0.0.1:{proxy_socket.getsockname()[1]}",
                "SSL_CERT_FILE": str(cert),
                "NO_PROXY": "",
            }
        finally:
            server.should_exit = True
            serves.join()


@contextlib.contextmanager
def _listening() -> Iterator[socket.socket]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(50)
        yield listening


def _lead(proxy: socket.socket, server: tuple[str, int]) -> None:
    """Every CONNECT leads to the server; ends when the proxy's socket is closed."""
    with contextlib.suppress(OSError):
        while True:
            client, _ = proxy.accept()
            threading.Thread(target=_connect, args=(client, server), daemon=True).start()


def _connect(client: socket.socket, server: tuple[str, int]) -> None:
    with client, client.makefile("rb") as asked:
        if not asked.readline().startswith(b"CONNECT "):
            client.sendall(b"HTTP/1.1 405 Method Not Allowed\r\n\r\n")
            return
        while asked.readline().strip():
            pass
        with socket.create_connection(server) as there:
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            back = threading.Thread(target=_pump, args=(there, client), daemon=True)
            back.start()
            _pump(client, there)
            back.join()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while part := source.recv(65536):
            sink.sendall(part)
        sink.shutdown(socket.SHUT_WR)
