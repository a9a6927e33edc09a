"""The Python that tests fork programs from (tests/support/ready_python.py) does as a Python that is started."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.kube import eventually
from tests.support.processes import awaited
from tests.support.ready_python import ready_python

BOTH = pytest.mark.parametrize(
    "python", [sys.executable, ready_python], ids=["a new one", "one that is ready"]
)


def path(python: object) -> str:
    return python if isinstance(python, str) else ready_python("reconciler.signals")


@BOTH
@pytest.mark.parametrize(
    ("code", "status", "error"),
    [
        pytest.param("pass", 0, "", id="an end"),
        pytest.param("import sys; sys.exit(3)", 3, "", id="a status"),
        pytest.param("import sys; sys.exit('no')", 1, "no\n", id="a reason"),
        pytest.param("1 / 0", 1, "ZeroDivisionError: division by zero\n", id="a fault"),
        pytest.param("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -9, "", id="a kill"),
    ],
)
def test_it_ends_as_its_code_ends(python: object, code: str, status: int, error: str) -> None:
    done = subprocess.run([path(python), "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr[-len(error) :] if error else done.stderr) == (status, error)


@BOTH
def test_it_has_the_words_the_folder_the_variables_and_the_streams(python: object, tmp_path: Path) -> None:
    code = (
        "import os, sys, atexit\n"
        "print(sys.argv, os.getcwd(), sorted(os.environ), sys.stdin.read(), __name__)\n"
        "atexit.register(print, 'at last')"
    )
    done = subprocess.run(
        [path(python), "-c", code, "a b", "--c"],
        input="given",
        cwd=tmp_path,
        env={"ONE": "1", "LC_CTYPE": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=True,
    )
    want = f"['-c', 'a b', '--c'] {tmp_path} ['LC_CTYPE', 'ONE'] given __main__\nat last\n"
    assert (done.stdout, done.stderr) == (want, "")


WAITS = """
import os
from reconciler.signals import ended_by_signals
with ended_by_signals() as ended:
    print(os.getpid(), flush=True)
    ended.wait(60)
print("ended")
"""


def begun(python: object) -> subprocess.Popen[str]:
    return subprocess.Popen([path(python), "-c", WAITS], stdout=subprocess.PIPE, text=True)


@BOTH
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_reach_it(python: object, number: signal.Signals) -> None:
    with awaited(begun(python)) as running:
        assert running.stdout is not None
        running.stdout.readline()
        running.send_signal(number)
        assert (running.stdout.read(), running.wait(60)) == ("ended\n", 0)


@BOTH
def test_one_that_is_killed_is_gone(python: object) -> None:
    with awaited(begun(python)) as running:
        assert running.stdout is not None
        process = int(running.stdout.readline())
        running.kill()
        assert running.wait(60) == -signal.SIGKILL
        eventually(lambda: not is_there(process), "its end")


def test_one_that_is_killed_before_it_has_asked_ends_no_other() -> None:
    """It ended the process that all programs of this run are forked from, and some of them lived on for ever."""
    program = path(ready_python)
    place = Path(program).with_name("socket")
    for words in (b"", b"\0".join((b"/", b"3", b"", b"-c", b"pass"))):
        asking = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        asking.connect(str(place))
        if words:
            socket.send_fds(asking, [words], [0, 1, 2])
        asking.close()
    assert subprocess.run([program, "-c", "print(1)"], capture_output=True, timeout=60).stdout == b"1\n"


def is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
