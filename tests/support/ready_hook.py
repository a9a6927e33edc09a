"""The hook's interpreter, ready before the push: it has imported the hook, and forks for each push that asks.

Imports are most of what a push costs. `ready_hook(folder)` gives the text of a program that stands in for
`egs-pre-receive`: it hands its environment, folder and streams to a fork of a process that runs until the end of the
block. The hook itself is the same; that it starts as a process of its own is another test's to see.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

CLIENT = """#!{python} -IS
import os, socket, sys
asking = socket.socket(socket.AF_UNIX)
asking.connect({place!r})
words = [os.getcwd(), *(f"{{name}}={{value}}" for name, value in os.environ.items())]
socket.send_fds(asking, ["\\0".join(words).encode()], [0, 1, 2])
sys.exit(asking.recv(1)[0])
"""
MOST_BYTES = 1 << 17


@contextlib.contextmanager
def ready_hook(folder: Path) -> Iterator[str]:
    """The program's text."""
    place = str(folder / "hook.socket")
    command = [sys.executable, "-c", f"from tests.support.ready_hook import serve; serve({place!r})"]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        try:
            assert server.stdout.readline() == b"ready\n"
            yield CLIENT.format(python=sys.executable, place=place)
        finally:
            server.terminate()


def serve(place: str) -> None:
    """Until it is ended: a fork for each push."""
    from reconciler.processes.push_hook_process import main  # the imports that are made once

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(place)
    listening.listen()
    print("ready", flush=True)
    while True:
        asking, _ = listening.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # it waits for children of its own
            asking.send(bytes([_answered(asking, main)]))
            os._exit(0)
        asking.close()


def _answered(asking: socket.socket, main: object) -> int:
    """The exit code of the hook in that environment, on those streams."""
    assert callable(main)
    words, streams, _, _ = socket.recv_fds(asking, MOST_BYTES, 3)
    where, *variables = words.decode().split("\0")
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.environ.clear()
    os.environ.update(variable.split("=", 1) for variable in variables)
    os.chdir(where)
    sys.argv = ["egs-pre-receive"]
    try:
        main()
    except SystemExit as done:
        return int(str(done.code or 0))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0
