"""The network under the SDK, for real: nobody there, a server that breaks off, one that never answers. A7."""

from __future__ import annotations

import contextlib
import socket
import threading

import pytest

import egs
from egs import exceptions
from egs.connection import Patience
from tests.support.sdk import FACES

BRIEF = Patience(connect_s=0.5, read_s=0.2, stream_s=0.2, attempts=2)
TOKEN = b'{"data": {"token": "t", "email": "ada@example.com", "role": "Owner"}}'


@contextlib.contextmanager
def server(*answers):
    """Gives each connection the next of these bytes, the last again and again, and closes it; None: never a word."""
    left = list(answers)
    open_ones = []

    def serve(listening):
        with contextlib.suppress(OSError):
            while True:
                client, _ = listening.accept()
                client.recv(65536)
                answer = left.pop(0) if len(left) > 1 else left[0]
                if answer is None:
                    open_ones.append(client)
                    continue
                client.sendall(answer)
                client.close()

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(10)
        threading.Thread(target=serve, args=(listening,), daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    for client in open_ones:
        client.close()


def http(status, body=b"", kind=b"application/json"):
    head = b"HTTP/1.1 %d X\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
    return head % (status, kind, len(body)) + body


@pytest.mark.parametrize("face", FACES)
def test_a_refused_connection_is_no_socket_error(face):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(exceptions.ServerUnreachable) as caught:
            FACES[face]("authenticate", address, "egs_a_key_of_some_length", patience=BRIEF)
    assert caught.value.address == address
    assert address in str(caught.value)
    assert "ConnectError" in str(caught.value)
    assert caught.value.exception is not caught.value


@pytest.mark.parametrize("face", FACES)
def test_a_name_that_nobody_has(face):
    with pytest.raises(exceptions.ServerUnreachable):
        FACES[face]("authenticate", "http://no-such-host.invalid", "egs_a_key_of_some_length", patience=BRIEF)


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize(
    "answer", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf", b"SSH-2.0\r\n", None]
)
def test_a_server_that_does_not_answer(face, answer):
    with server(answer) as url, pytest.raises(exceptions.ServerUnreachable):
        FACES[face]("authenticate", url, "egs_a_key_of_some_length", patience=BRIEF)


@pytest.mark.parametrize("face", FACES)
def test_the_second_try_counts(face):
    with server(b"", http(200, TOKEN)) as url:
        auth = FACES[face]("authenticate", url, "egs_a_key_of_some_length", patience=BRIEF)
    assert auth.email == "ada@example.com"


@pytest.mark.parametrize("face", FACES)
def test_a_web_site_is_no_egs_server(face):
    with (
        server(http(404, b"<html>not here</html>", b"text/html")) as url,
        pytest.raises(exceptions.ServerUnreachable, match="no EGS server"),
    ):
        FACES[face]("authenticate", url, "egs_a_key_of_some_length", patience=BRIEF)


def test_a_stream_that_is_silent_is_opened_again():
    state = b'data: {"gprId": "gpr-1", "phase": "Failed"}\n\n'
    streams = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
    with server(http(200, TOKEN), None, streams + state) as url:
        auth = egs.authenticate(url, "egs_a_key_of_some_length", patience=Patience(0.5, 0.2, 0.2, 4))
        assert [request.phase for request in egs.watch("gpr-1", authenticated_session=auth)] == ["Failed"]
