"""A Python that has made its imports: programs that tests start fork from it.

Imports are most of what a program of ours costs: 0.8 s of CPU for a controller, 1.2 s for a portal.
`ready_python(module)` is a program that is called as Python is, `-c CODE WORD...`. It hands its words, environment,
folder and streams to a fork of a process that has imported the module, passes signals on to it, and ends as it ends; if
it is killed, the fork is killed. Each program is started without this in a test of its own too.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

CLIENT = """#!{python} -IS
import os, signal, socket, sys
asking = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
asking.connect({place!r})
passed = signal.SIGTERM, signal.SIGINT
signal.pthread_sigmask(signal.SIG_BLOCK, passed)  # until it is known to which process they are passed
words = [os.getcwdb(), b"%d" % len(sys.argv), *map(os.fsencode, sys.argv)]
words += [name + b"=" + value for name, value in os.environb.items()]
socket.send_fds(asking, [b"\\0".join(words)], [0, 1, 2])
forked = int(asking.recv(20))
for number in passed:
    signal.signal(number, lambda number, _: os.kill(forked, number))
signal.pthread_sigmask(signal.SIG_UNBLOCK, passed)
status = int(asking.recv(20) or 70)
if status < 0:
    signal.signal(-status, signal.SIG_DFL) if status != -signal.SIGKILL else None
    os.kill(os.getpid(), -status)
os._exit(status)
"""
SERVER = "import tests.support.ready_python as ready; exec(ready.forked({place!r}, {module!r}))"
MOST_BYTES = 1 << 17
ROOT = Path(__file__).parents[2]


@cache
def ready_python(module: str) -> str:
    """The program's path; the process behind it lives as long as this one."""
    folder = Path(tempfile.mkdtemp(prefix="egs-ready-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    place, program = str(folder / "socket"), folder / "python"
    command = [sys.executable, "-c", SERVER.format(place=place, module=module)]
    # It ends when its input does: with this process, however that ends.
    server = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"
    atexit.register(_end, server)
    program.write_text(CLIENT.format(python=sys.executable, place=place))
    program.chmod(0o755)
    return str(program)


def _end(server: subprocess.Popen[bytes]) -> None:
    with server:
        server.terminate()


def forked(place: str, module: str) -> str:
    """In each fork: the code that it was asked to run. Where it was called it never returns."""
    importlib.import_module(module)
    gc.freeze()  # pages that are not touched are not copied
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening.bind(place)
    listening.listen(64)
    print("ready", flush=True)
    watched, living = selectors.DefaultSelector(), Living()
    watched.register(sys.stdin, selectors.EVENT_READ)
    watched.register(listening, selectors.EVENT_READ)
    while True:
        key, _ = watched.select()[0]  # the next may be of what the first ends
        if key.fileobj is sys.stdin:
            sys.exit()
        elif key.fileobj is listening:
            asking, _ = listening.accept()
            words, streams = _asked_for(asking)
            if not words:
                asking.close()
                continue
            process = os.fork()
            if process == 0:
                living.forget(asking, listening)
                watched.close()
                return _become(words, streams)
            for stream in streams:
                os.close(stream)
            living.add(process, asking, watched)
        elif isinstance(key.fileobj, socket.socket):
            living.kill(key.fileobj, watched)
        else:
            living.end(key.fd, watched)


def _asked_for(asking: socket.socket) -> tuple[bytes, list[int]]:
    """Words and streams of who asks; nothing if it was killed before it said them."""
    try:
        words, streams, _, _ = socket.recv_fds(asking, MOST_BYTES, 3)
    except ConnectionError:
        return b"", []
    return words, streams


class Living:
    """The forks, and who asked for each."""

    def __init__(self) -> None:
        self._asked: dict[socket.socket, int] = {}
        self._ends: dict[int, tuple[int, socket.socket]] = {}
        """By the descriptor that tells of its end."""

    def add(self, process: int, asking: socket.socket, watched: selectors.BaseSelector) -> None:
        with contextlib.suppress(ConnectionError):  # it was killed meanwhile: its end is the next event
            asking.send(b"%d" % process)
        self._asked[asking] = process
        end = os.pidfd_open(process)
        self._ends[end] = process, asking
        for each in (asking, end):
            watched.register(each, selectors.EVENT_READ)

    def kill(self, asking: socket.socket, watched: selectors.BaseSelector) -> None:
        """Who asked is gone."""
        watched.unregister(asking)
        os.kill(self._asked.pop(asking), signal.SIGKILL)

    def end(self, end: int, watched: selectors.BaseSelector) -> None:
        """Tell who asked, if they are there."""
        watched.unregister(end)
        os.close(end)
        process, asking = self._ends.pop(end)
        _, status = os.waitpid(process, 0)
        if self._asked.pop(asking, None):
            watched.unregister(asking)
            with contextlib.suppress(ConnectionError):
                asking.send(b"%d" % os.waitstatus_to_exitcode(status))
        asking.close()

    def forget(self, *more: socket.socket) -> None:
        """In a fork, which has none."""
        for asking in (*more, *(asking for _, asking in self._ends.values())):
            asking.close()
        for end in self._ends:
            os.close(end)


def _become(words: bytes, streams: list[int]) -> str:
    """Be the program that was asked for; gives its code."""
    folder, count, *rest = words.split(b"\0")
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    given = [os.fsdecode(word) for word in rest[: int(count)]]
    os.environ.clear()
    for variable in rest[int(count) :]:
        name, _, value = variable.partition(b"=")
        os.environb[name] = value
    os.chdir(folder)
    _, option, code, *arguments = given
    assert option == "-c", "only `-c CODE` is known"
    sys.argv = ["-c", *arguments]
    return code
