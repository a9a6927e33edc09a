"""Real bare repositories for tests: made in one `fast-import`, changed as a person would, broken on purpose.

`bare(path, files)` makes one; `commit(repo, files)` adds a commit to a branch behind the product's back;
`git(repo, ...)` runs any git command there. `serve(folder)` gives the folder's repositories out over HTTP.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import hashlib
import os
import shutil
import ssl
import subprocess
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FileText = bytes | str | None
ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.com",
    "GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.com",
}  # fmt: skip


def git(repo: Path, *args: str, given: bytes = b"") -> str:
    """Run git in a repository and give its output without the last line end."""
    done = subprocess.run(
        ["git", *args], cwd=repo, env=ENVIRONMENT, input=given, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")


def bare(path: Path, files: Mapping[str, FileText] | None = None, branch: str = "main") -> Path:
    """A bare repository whose branch holds the files (none: no branch yet); re-rooting is allowed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    made = _made(branch, None if files is None else tuple(sorted(files.items())))
    shutil.copytree(made, path, copy_function=shutil.copyfile)
    return path


@cache
def _made(branch: str, files: tuple[tuple[str, FileText], ...] | None) -> Path:
    """The repository that `bare` copies: several processes make one, and many tests begin with the same."""
    path = Path(tempfile.mkdtemp(dir=_originals())) / "repo.git"
    if files is None:
        path.mkdir()
        git(path, "init", "--quiet", "--bare", "--template=", f"--initial-branch={branch}")
        git(path, "config", "http.receivepack", "true")
        (path / "hooks").mkdir()
        (path / "info").mkdir()
    else:
        commit(bare(path, None, branch), dict(files), branch)
    return path


@cache
def _originals() -> Path:
    """A folder of this process."""
    folder = tempfile.mkdtemp(prefix="egs-repos-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def commit(
    repo: Path,
    files: Mapping[str, FileText],
    branch: str = "main",
    message: str = "Change",
    author: str = "Ada <ada@example.com>",
    at_s: int = 1767225600,
) -> str:
    """Put files (None: delete) on top of a branch as one commit of that second, and give its id."""
    ref = f"refs/heads/{branch}"
    stream = bytearray(f"commit {ref}\nmark :1\ncommitter {author} {at_s} +0000\n".encode())
    stream += _data(message.encode())
    if (repo / ref).is_file() or git(repo, "for-each-ref", ref):  # a packed one is no file
        stream += f"from {ref}^0\n".encode()
    for path, text in files.items():
        if text is None:
            stream += b"D " + path.encode("utf-8", "surrogateescape") + b"\n"
        else:
            content = text.encode() if isinstance(text, str) else text
            stream += b"M 100644 inline " + path.encode("utf-8", "surrogateescape") + b"\n" + _data(content)
    stream += b"get-mark :1\ndone\n"
    options = ("-c", "fastimport.unpackLimit=0")
    return git(repo, *options, "fast-import", "--quiet", "--done", given=bytes(stream))


def _data(content: bytes) -> bytes:
    return b"data %d\n" % len(content) + content + b"\n"


def tip(repo: Path, branch: str = "main") -> str:
    """The id that a branch stands at."""
    loose = repo / "refs" / "heads" / branch
    return loose.read_text().strip() if loose.is_file() else git(repo, "rev-parse", f"refs/heads/{branch}")


def file(repo: Path, name: str) -> str | None:
    """The text of a file by a name such as `main:project.yaml`; None: there is none."""
    asked = ["git", "cat-file", "--batch"]
    done = subprocess.run(
        asked, cwd=repo, env=ENVIRONMENT, input=f"{name}\n".encode(), capture_output=True, check=True
    )
    head, _, content = done.stdout.partition(b"\n")
    return None if head.endswith(b" missing") else content.decode("utf-8", "surrogateescape").rstrip("\n")


def write_object(repo: Path, kind: str, data: bytes) -> str:
    """Put an object into a repository without any check, however malformed it is."""
    whole = b"%s %d\0" % (kind.encode(), len(data)) + data
    oid = hashlib.sha1(whole).hexdigest()
    objects = next(folder for folder in (repo / "objects", repo / ".git" / "objects") if folder.is_dir())
    place = objects / oid[:2] / oid[2:]
    if not place.exists():
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(zlib.compress(whole))
    return oid


def point(repo: Path, ref: str, oid: str) -> None:
    """Move a ref of a bare repository to a commit, wherever it was."""
    place = repo / ref
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"{oid}\n")


def tree_entry(mode: str, name: bytes, oid: str) -> bytes:
    """One entry of a tree object's bytes."""
    return mode.encode() + b" " + name + b"\0" + bytes.fromhex(oid)


def commit_tree(repo: Path, tree: str, branch: str) -> str:
    """Make a branch of one parentless commit with this tree, and give the commit's id."""
    who = b"Eve <eve@example.com> 1767225600 +0000"
    oid = write_object(repo, "commit", b"tree %s\nauthor %s\ncommitter %s\n\nx\n" % (tree.encode(), who, who))
    point(repo, f"refs/heads/{branch}", oid)
    return oid


@contextlib.contextmanager
def serve(
    folder: Path,
    login: str | None = None,
    tls: ssl.SSLContext | None = None,
    met: Callable[[str | None], int] | None = None,
    location: str | None = None,
) -> Iterator[str]:
    """Git's own HTTP server for the repositories in a folder; gives the URL that the folder stands for.

    With `login` ("name:password") it answers nobody else; `met` is told each request's Authorization and gives the
    status of the answer, 200 to go on; whoever is let in is sent on to `location`.
    """

    class Handler(_GitHandler):
        root = folder
        judge = staticmethod(met or _judge(login))
        elsewhere = location

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http{'' if tls is None else 's'}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def basic(login: str) -> str:
    """The header's value for "name:password"."""
    return "Basic " + base64.b64encode(login.encode()).decode()


def _user(header: str | None) -> dict[str, str]:
    """What a web server tells git of whoever logged in."""
    if header is None or not header.startswith("Basic "):
        return {}
    return {"REMOTE_USER": base64.b64decode(header.removeprefix("Basic ")).decode().rpartition(":")[0]}


def _judge(login: str | None) -> Callable[[str | None], int]:
    return lambda header: 200 if login is None or header == basic(login) else 401


class _GitHandler(BaseHTTPRequestHandler):
    root: Path
    judge: Callable[[str | None], int]
    elsewhere: str | None
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        """Tests are quiet."""

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self._body())

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", "0")))
        body = bytearray()
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return bytes(body)

    def _answer(self, body: bytes) -> None:
        status = self.judge(self.headers.get("Authorization"))
        if status != 200:
            self.send_response(status)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if self.elsewhere is not None:
            self.send_response(301)
            self.send_header("Location", self.elsewhere + self.path)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        path, _, query = self.path.partition("?")
        environment = {
            **ENVIRONMENT,
            "GIT_PROJECT_ROOT": str(self.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "REMOTE_ADDR": "127.0.0.1",
            **_user(self.headers.get("Authorization")),
        }
        done = subprocess.run(
            ["git", "http-backend"], env=environment, input=body, capture_output=True, check=False
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().splitlines() if line)
        self.send_response(int(headers.pop("Status", "200 OK").split(" ")[0]))
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
