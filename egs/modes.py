"""Decides whether a command line is for a repository or a server, and for which. Only reads folders and files.

The first that applies decides:
  1. `--repo` (or `plan --instance`): a repository; `--server` or `--context`: a server;
  2. EGS_REPO: a repository; EGS_SERVER: a server;
  3. the current folder: a repository if it or a parent has a project.yaml or is a bare repository;
  4. the current context of the context file: a server;
  5. otherwise the current folder, as a repository.
With only the client installed, every command is for a server.

Held by tests/egs/test_modes.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from egs import contexts
from egs.commands.errors import Said, not_allowed, wrong_use

OWN_CONTEXT = frozenset({
    "diff", "doctor", "init", "install", "uninstall", "kubeconfig", "kubeconfig-token", "login",
})  # fmt: skip
"""Commands with their own --context; the one that chooses a server comes before the command."""
_LOCAL = frozenset({
    "check-pr", "context", "demo", "doctor", "init", "install", "kubeconfig-token", "login", "logout", "simulate",
    "uninstall", "validate",
})  # fmt: skip
"""Commands for the caller's own files, clusters and contexts; they never ask a server."""
_REPOSITORY_WORDS = ("--repo", "--instance")
_HELP = frozenset({"-h", "--help", "--version"})


@dataclass(frozen=True, slots=True)
class Target:
    """A server, and what opens it."""

    server: str
    api_key: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    context: str = ""
    """Its name in the context file; empty: an option or the environment names the server."""
    email: str = ""


SERVER: ContextVar[Target | None] = ContextVar("server", default=None)
"""The server of the running command line, if any; set by `egs.cli`, read by `egs.remote.asking`."""


@dataclass(frozen=True, slots=True)
class Here:
    """What decides besides the words: the environment, the current folder, and what is installed."""

    environ: Mapping[str, str] = field(repr=False)
    folder: Path
    has_repositories: bool


@dataclass(frozen=True, slots=True)
class Line:
    """A command line without the options that choose a server."""

    words: tuple[str, ...]
    server: str = ""
    context: str = ""

    @property
    def command(self) -> str:
        """The first word that is not an option; empty: there is none."""
        return next((word for word in self.words if not word.startswith("-")), "")

    @property
    def needs_nothing(self) -> bool:
        """Whether it needs neither a repository nor a server."""
        return not self.command or self.command in _LOCAL or bool(_HELP & set(self.words))

    @property
    def names_repository(self) -> bool:
        """Whether it has an option that only a repository or a file can answer."""
        return any(word.partition("=")[0] in _REPOSITORY_WORDS for word in self.words)


def line_of(words: Sequence[str]) -> Line:
    """Raises Said if an option has no value."""
    rest, found, todo = [], {"--server": "", "--context": ""}, list(words)
    command = ""
    while todo:
        word = todo.pop(0)
        name, equals, value = word.partition("=")
        if word == "--":
            rest += [word, *todo]
            break
        if name not in found or command in OWN_CONTEXT:
            command = command or ("" if word.startswith("-") else word)
            rest.append(word)
            continue
        if not equals and not todo:
            raise wrong_use(f"{name} needs a value")
        found[name] = value if equals else todo.pop(0)
    return Line(tuple(rest), found["--server"], found["--context"])


def target_of(line: Line, here: Here) -> Target | None:
    """The server that the line is for; None: it is for a repository. Raises Said."""
    if line.names_repository and (line.server or line.context):
        raise wrong_use("--repo names a repository and --server a server; give one of them")
    if line.server or line.context:
        return _chosen(line, here)
    if here.has_repositories and (line.names_repository or here.environ.get("EGS_REPO")):
        return None
    if here.environ.get("EGS_SERVER"):
        return named(here.environ["EGS_SERVER"], here)
    if here.has_repositories and is_repository(here.folder):
        return None
    return current(here)


def server_of(line: Line, here: Here) -> Target | None:
    """The server, whatever the current folder; None: none is known. Raises Said."""
    if line.server or line.context:
        return _chosen(line, here)
    return named(here.environ["EGS_SERVER"], here) if here.environ.get("EGS_SERVER") else current(here)


def current(here: Here) -> Target | None:
    """The server of the current context; None: there is none. Raises Said, also for an empty EGS_API_KEY."""
    _typed_key(here.environ)
    book = _book(here)
    return _of_context(book, book.current) if book.current else None


def named(server: str, here: Here) -> Target:
    """A server by its address, with the key of the environment, else of a context of that server."""
    key = _key(here.environ)
    if key:
        return Target(server, key)
    book = _book(here)
    same = sorted(name for name, c in book.contexts.items() if c.server.rstrip("/") == server.rstrip("/"))
    if not same:
        return Target(server)
    return _of_context(book, book.current if book.current in same else same[0])


def is_repository(folder: Path) -> bool:
    """Whether the folder is in a fleet's repository; other Git repositories do not count."""
    return any((place / "project.yaml").is_file() or _is_bare(place) for place in (folder, *folder.parents))


def _is_bare(folder: Path) -> bool:
    return (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir()


def _chosen(line: Line, here: Here) -> Target:
    if line.server and line.context:
        raise wrong_use("--server names an address and --context a context; give one of them")
    return named(line.server, here) if line.server else _of_context(_book(here), line.context)


def _of_context(book: contexts.Book, name: str) -> Target:
    found = book.named(name)
    return Target(found.server, found.api_key, found.token, name, found.email)


def _book(here: Here) -> contexts.Book:
    return contexts.read(contexts.path_of(here.environ))


def _key(environ: Mapping[str, str]) -> str:
    if environ.get("EGS_API_KEY_FILE"):
        return key_in(Path(environ["EGS_API_KEY_FILE"]).expanduser())
    return _typed_key(environ)


def _typed_key(environ: Mapping[str, str]) -> str:
    """EGS_API_KEY; "": it is not set. Raises Said if it is set but empty."""
    key = environ.get("EGS_API_KEY")
    if key is not None and not key.strip():
        # A script whose secret is missing must not run as the person who is logged in here.
        raise not_allowed(
            "EGS_API_KEY is set and empty; set it to an API key, or unset it to use what `egs login` keeps",
            "ApiKeyInvalid",
        )
    return (key or "").strip()


def key_in(file: Path) -> str:
    """The API key in a file. Raises Said."""
    try:
        text = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(file, getattr(error, "strerror", None) or "it is not UTF-8") from error
    if not text:
        raise _unreadable(file, "it is empty")
    return text


def _unreadable(file: Path, why: str) -> Said:
    return not_allowed(f"{file}: no API key can be read there: {why}", "ApiKeyInvalid")
