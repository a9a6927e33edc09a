"""The operator's keys, kept outside the repository: who signs with which key, and which keys are revoked.

A folder mounted from a ConfigMap or Secret: `allowed_signers` in OpenSSH's format, `revoked_keys` with one
public key per line, `gpg/` with exported OpenPGP keys (read by `reconciler.trust.signature_check`). Parsing
is strict: an unreadable line might revoke someone's rights, so nothing counts until it is fixed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path

from reconciler.trust.sshsig import canonical_key
from schemas.errors import Fault, UserError

SIGNERS, REVOKED, GPG = "allowed_signers", "revoked_keys", "gpg"
"""Names in the folder."""

_REASON = "BadTrustFolder"
_MOST_BYTES = 1 << 20  # 10,000 keys
_QUOTED_OR_WORD = re.compile(r'(?:"[^"]*"|[^\s"])+')
_OPTION = re.compile(r'(?P<name>[A-Za-z-]+)="(?P<value>[^"]*)"')
_INSTANT = re.compile(r"(\d{8})(?:(\d{4})(\d{2})?)?Z?")
_PATTERN = re.compile(r"[A-Za-z0-9@._%+/:*?~'&=-]+")


@dataclass(frozen=True, slots=True)
class Signer:
    """One line of allowed_signers."""

    principals: tuple[str, ...]
    key: str
    namespaces: tuple[str, ...] = ()  # empty: all of them
    valid_after: datetime | None = None
    valid_before: datetime | None = None

    def counts(self, namespace: str, now: datetime) -> bool:
        """True if its key may sign for that purpose at that time."""
        if not self.is_timely(now):
            return False
        return not self.namespaces or any(fnmatchcase(namespace, each) for each in self.namespaces)

    def is_timely(self, now: datetime) -> bool:
        """True from `valid_after` to `valid_before`."""
        has_begun = self.valid_after is None or now >= self.valid_after
        return has_begun and (self.valid_before is None or now <= self.valid_before)


@dataclass(frozen=True, slots=True)
class Keyring:
    """The folder's content. Keys are as `sshsig.canonical_key` gives them."""

    signers: tuple[Signer, ...] = ()
    revoked_keys: frozenset[str] = frozenset()
    is_given: bool = False
    """True if there is an allowed_signers file; without it only the keys in manifests are known."""

    def principals(self, key: str, namespace: str, now: datetime) -> tuple[str, ...]:
        """The principals that the key signs for, patterns as written; a revoked key signs for none."""
        found = (p for signer in self._signers(key, namespace, now) for p in signer.principals)
        return tuple(dict.fromkeys(found))

    def allows(self, key: str, principal: str, namespace: str, now: datetime) -> bool:
        """True if that key signs for that principal, by name or by a pattern (`agent:east/*`)."""
        return any(fnmatchcase(principal, each) for each in self.principals(key, namespace, now))

    def names(self, principal: str) -> bool:
        """True if any line, valid now or not, names exactly that principal."""
        return any(principal in signer.principals for signer in self.signers)

    def names_any(self, prefix: str) -> bool:
        """True if any line, valid now or not, names a principal with that prefix."""
        return any(p.startswith(prefix) for signer in self.signers for p in signer.principals)

    def revoked(self, key: str) -> bool:
        return key in self.revoked_keys

    def bars(self, key: str, now: datetime) -> bool:
        """True if the key does not count at that time, wherever it is listed: it is revoked, or outside its dates.

        The folder's dates hold for keys in manifests too; otherwise a line in a slice would outlive them.
        """
        lines = [signer for signer in self.signers if signer.key == key]
        return self.revoked(key) or (bool(lines) and not any(line.is_timely(now) for line in lines))

    def _signers(self, key: str, namespace: str, now: datetime) -> Iterator[Signer]:
        if not self.revoked(key):
            yield from (s for s in self.signers if s.key == key and s.counts(namespace, now))


def read_keyring(folder: Path | None) -> Keyring:
    """Reads the folder; None: an empty keyring. UserError `BadTrustFolder` names the file and the line."""
    if folder is None:
        return Keyring()
    if not folder.is_dir():
        raise _bad(f"{folder} is not a folder; give the folder that contains {SIGNERS}")
    listed, revoked = _text(folder / SIGNERS), _text(folder / REVOKED)
    return Keyring(
        signers=parse_signers(listed or "", str(folder / SIGNERS)),
        revoked_keys=parse_revoked(revoked or "", str(folder / REVOKED)),
        is_given=listed is not None,
    )


class TrustFolder:
    """The keyring of a folder that may change at run time: read again after a file in it changed."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._seen = stamp(folder)
        self._keyring = read_keyring(folder)

    def keyring(self) -> Keyring:
        """The current keyring. Fault `BadTrustFolder` if it is unreadable: then no change can be judged."""
        seen = stamp(self._folder)
        if seen != self._seen:
            try:
                self._keyring = read_keyring(self._folder)
            except UserError as error:
                raise Fault(str(error), _REASON) from error
            self._seen = seen
        return self._keyring


def stamp(folder: Path | None) -> tuple[tuple[str, int, int, int], ...]:
    """Changes whenever a file of the folder changes, also if the folder is replaced as a whole."""
    if folder is None:
        return ()
    files = (folder / SIGNERS, folder / REVOKED, *gpg_files(folder))
    return tuple(found for file in files if (found := _about(file)) is not None)


def gpg_files(folder: Path) -> list[Path]:
    return sorted((folder / GPG).glob("*.asc"))


def _about(file: Path) -> tuple[str, int, int, int] | None:
    try:
        about = file.stat()
    except OSError:
        return None
    return str(file), about.st_ino, about.st_mtime_ns, about.st_size


# -- lines -----------------------------------------------------------------------------------------------------


def parse_signers(text: str, where: str = SIGNERS) -> tuple[Signer, ...]:
    """Reads allowed_signers: principals, options, key. UserError `BadTrustFolder`."""
    return tuple(_signer(line, at) for at, line in _lines(text, where))


def parse_revoked(text: str, where: str = REVOKED) -> frozenset[str]:
    """Reads revoked_keys: one public key, or `gpg:` and a fingerprint, a line. UserError `BadTrustFolder`."""
    return frozenset(_key(line, at) for at, line in _lines(text, where))


def _lines(text: str, where: str) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield f"{where}:{number}", line.strip()


def _signer(line: str, at: str) -> Signer:
    named = _QUOTED_OR_WORD.match(line)
    if named is None:
        raise _bad(f"{at}: no principal; write `ada@example.com ssh-ed25519 AAAA…`")
    principals = tuple(named.group().replace('"', "").split(","))
    for principal in principals:
        if not _PATTERN.fullmatch(principal):
            raise _bad(
                f"{at}: {principal[:80]!r} is not a principal; write an address, or a name like `controller`"
            )
    rest = line[named.end() :].strip()
    if _is_key(rest):
        return Signer(principals, _key(rest, at))
    options = _QUOTED_OR_WORD.match(rest)
    if options is None:
        raise _bad(f"{at}: no key; write the content of the .pub file after the principal")
    return _with_options(Signer(principals, _key(rest[options.end() :].strip(), at)), options.group(), at)


def _with_options(signer: Signer, text: str, at: str) -> Signer:
    namespaces, after, before = signer.namespaces, signer.valid_after, signer.valid_before
    for option in re.split(r',(?=(?:[^"]*"[^"]*")*[^"]*$)', text):
        match = _OPTION.fullmatch(option)
        name, value = (match["name"].lower(), match["value"]) if match is not None else ("", "")
        if name == "namespaces":
            namespaces = tuple(value.split(","))
        elif name == "valid-after":
            after = _instant(value, at)
        elif name == "valid-before":
            before = _instant(value, at)
        else:
            raise _bad(
                f"{at}: the option {option[:80]!r} is not supported; use namespaces, valid-after and valid-before, "
                'each as name="value"; certificates do not count'
            )
    if after is not None and before is not None and after >= before:
        raise _bad(f"{at}: valid-after is not before valid-before; the key would never be valid")
    return Signer(signer.principals, signer.key, namespaces, after, before)


def _instant(text: str, at: str) -> datetime:
    match = _INSTANT.fullmatch(text)
    try:
        if match is not None:
            day, minute, second = match[1], match[2] or "0000", match[3] or "00"
            return datetime.strptime(day + minute + second, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        pass  # a month of 13: the error below covers it
    raise _bad(f"{at}: {text[:40]!r} is not a time; write YYYYMMDD or YYYYMMDDHHMM, in UTC")


def _is_key(text: str) -> bool:
    first = text.partition(" ")[0]
    return first.startswith(("ssh-", "ecdsa-", "sk-", "gpg:"))


def _key(text: str, at: str) -> str:
    words = text.split()
    key = canonical_key(words[0] if words and words[0].startswith("gpg:") else text)
    if key is None:
        raise _bad(
            f"{at}: {text[:60]!r} is not a supported key; write the content of a .pub file (ed25519, ECDSA, RSA from "
            "2048 bits; no certificate), or gpg: and the 40 hex digits of a fingerprint"
        )
    return key


def _text(file: Path) -> str | None:
    """A file's text; None: the file does not exist."""
    try:
        with file.open("rb") as opened:
            content = opened.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _bad(f"{file} cannot be read: {error.strerror}; check its permissions") from error
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _bad(
            f"{file} is not text; write one key per line (`ssh-keygen -L` lists what a KRL has)"
        ) from error
    if len(content) > _MOST_BYTES:
        raise _bad(f"{file} has more than {_MOST_BYTES} bytes; remove unused keys")
    return text


def _bad(sentence: str) -> UserError:
    return UserError(f"trust folder: {sentence}", _REASON)
