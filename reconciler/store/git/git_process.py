"""Runs git, and nothing but git, isolated.

Every git process of this project starts here: a fixed argument list (never a shell), an environment made from
scratch (no `GIT_*`, proxy or askpass variable of the caller), only our configuration, a time limit, and
output without credentials. Only a process that talks to the remote gets its credentials. Arguments from
outside have passed `reconciler.store.git.git_names` before.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeVar, cast

from reconciler.credentials import Credentials
from reconciler.store.git.open_remote import Opening, opening
from reconciler.store.git.remote_address import Address, scrubbed
from reconciler.store.git.unreadable_remote import NOT_STARTED
from schemas.errors import Fault, UserError

Answer = TypeVar("Answer")

TIMED_OUT = 124  # the exit code of coreutils' timeout; git never uses it
_SHOWN_CHARACTERS = 500

# Findings that some versions of git's fsck only warn of, and that no honest repository has.
_REFUSED_FINDINGS = (
    "badFilemode", "duplicateEntries", "emptyName", "fullPathname", "hasDot", "hasDotdot", "hasDotgit",
    "nullSha1", "treeNotSorted",
)  # fmt: skip
_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "credential.helper=",
    "fastimport.unpackLimit=0",  # one pack per commit: no process and no loose object for each
    # According to git's manual, loose objects may stay after a refusal and count as known at the next fetch;
    # a pack is added as a whole, after its check.
    "fetch.unpackLimit=1",
    "gc.auto=0",  # the mirror's owner does its maintenance
    "maintenance.auto=false",
    "pack.writeBitmaps=false",
    "repack.writeBitmaps=false",
    "submodule.recurse=false",
    "transfer.fsckObjects=true",
    *(f"fetch.fsck.{finding}=error" for finding in _REFUSED_FINDINGS),
)


@dataclass(frozen=True, slots=True)
class Completed:
    """The result of a git process; `error` has no credentials and is short enough for a message."""

    code: int
    output: bytes
    error: str


def find_git() -> str:
    found = shutil.which("git")
    if found is None:
        raise Fault("git is not installed; install git 2.33 or newer", "GitFailed")
    return str(Path(found).absolute())


def closed_environment(home: Path, protocol: str) -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "LC_ALL": "C",
        "GIT_ALLOW_PROTOCOL": protocol,
        "GIT_ASKPASS": "",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_COUNT": "0",
    }


def as_person(args: Sequence[str], folder: Path) -> Completed:
    """Runs git as the caller would: in their environment, with their configuration, in that folder.

    The one exception to the isolation, for the person's own settings: name, key, a new repository. Fixed
    arguments only.
    """
    done = subprocess.run(  # noqa: S603 - a list, with fixed arguments
        [find_git(), *args],
        cwd=folder if folder.is_dir() else None,
        env=os.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    return Completed(done.returncode, done.stdout, _shown(done.stderr, ()))


def configuration(folder: Path) -> Mapping[str, str]:
    """Git's configuration in that folder, user configuration included, by names such as `user.signingkey`."""
    done = as_person(["config", "--null", "--list"], folder)
    lines = done.output.decode("utf-8", "replace").split("\0")
    return {name: value.strip() for name, _, value in (line.partition("\n") for line in lines)}


class Git:
    """Runs git for one repository and one remote; `variables` point to objects stored elsewhere, if any."""

    def __init__(
        self,
        git_dir: Path,
        home: Path,
        address: Address,
        credentials: Credentials | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self._prefix = [find_git(), f"--git-dir={git_dir}"]
        self._prefix += [word for setting in _SETTINGS for word in ("-c", setting)]
        self._environment = closed_environment(home, address.protocol) | dict(variables or {})
        self._cwd = git_dir
        self._address = address
        self._credentials = credentials or Credentials()

    def run(self, args: Sequence[str], timeout_s: float, given: bytes = b"") -> Completed:
        """Runs to the end or the limit (then code `TIMED_OUT`, with its children killed too)."""
        return self._run(args, timeout_s, given, Opening(secrets=self._address.secrets))

    def talk(self, args: Sequence[str], timeout_s: float) -> Completed:
        """Runs a command that talks to the remote, with the current credentials.

        If these are unreadable nothing is run: the code is `NOT_STARTED`, the error says what to do.
        """
        try:
            opened = opening(self._address, self._credentials)
        except UserError as error:
            return Completed(NOT_STARTED, b"", str(error))
        return self._run(args, timeout_s, b"", opened)

    def _run(self, args: Sequence[str], timeout_s: float, given: bytes, opened: Opening) -> Completed:
        process = self._start(args, subprocess.PIPE, opened)
        try:
            output, error = process.communicate(given, timeout_s)
        except subprocess.TimeoutExpired:
            return Completed(TIMED_OUT, b"", f"git {args[0]} took longer than {timeout_s:g} s")
        finally:
            _end(process)
        return Completed(process.returncode, output, _shown(error, opened.secrets))

    def check(self, args: Sequence[str], timeout_s: float, given: bytes = b"") -> bytes:
        """The output of a command that must succeed."""
        done = self.run(args, timeout_s, given)
        if done.code != 0:
            raise Fault(f"git {args[0]} failed (exit {done.code}): {done.error}", "GitFailed")
        return done.output

    def start(self, args: Sequence[str]) -> subprocess.Popen[bytes]:
        """Starts a local process with pipes; the caller ends it."""
        return self._start(args, subprocess.DEVNULL, Opening())

    def _start(self, args: Sequence[str], stderr: int, opened: Opening) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - a list, with names checked by reconciler.store.git.git_names
            [*self._prefix, *opened.arguments, *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            cwd=self._cwd,
            env=self._environment | dict(opened.variables),
            start_new_session=True,  # so that its transport helpers can be killed with it
        )


def _shown(error: bytes, secrets: tuple[str, ...]) -> str:
    # The server writes into this text too: it must not control a terminal.
    text = scrubbed(error.decode("utf-8", "replace"), secrets)
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    return " ".join(plain.split())[-_SHOWN_CHARACTERS:]


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


class Helper:
    """A git process that stays alive between questions; started on first use, again after it died.

    Questions are answered in order, one thread at a time. A question larger than a pipe's buffer (64 KiB)
    with a large answer would deadlock: callers ask in portions.
    """

    def __init__(self, git: Git, args: Sequence[str]) -> None:
        self._git = git
        self._args = tuple(args)
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def ask(self, question: bytes, read: Callable[[BinaryIO], Answer]) -> Answer:
        """Sends a question and reads its answer; if the helper died meanwhile it is asked once more."""
        with self._lock:
            try:
                return self._ask(question, read)
            except (EOFError, BrokenPipeError):
                self._stop()
            try:
                return self._ask(question, read)
            except (EOFError, BrokenPipeError) as error:
                self._stop()
                text = f"git {self._args[0]} ended in the middle of an answer; run git fsck in the mirror"
                raise Fault(text, "CorruptObjects") from error

    def _ask(self, question: bytes, read: Callable[[BinaryIO], Answer]) -> Answer:
        if self._process is None:
            self._process = self._git.start(self._args)
        process, answered = self._process, False
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(question)
            process.stdin.flush()
            answer = read(cast("BinaryIO", process.stdout))
            answered = True
        finally:
            # The rest of a half-read answer must not be taken for the next one.
            if not answered:
                self._stop()
        return answer

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()

    def close(self) -> None:
        """Ends the process; the next question starts a new one."""
        with self._lock:
            self._stop()


def read_exactly(output: BinaryIO, count: int) -> bytes:
    """Exactly that many bytes, or EOFError."""
    data = output.read(count)
    if len(data) < count:
        raise EOFError
    return data


def read_line(output: BinaryIO) -> bytes:
    """One line without its end, or EOFError."""
    line = output.readline()
    if not line.endswith(b"\n"):
        raise EOFError
    return line[:-1]
