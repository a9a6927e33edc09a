"""People in slices and slice requests: an address, and the key and account that identify the person.

Held by tests/reconciler/cli/test_slices.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reconciler.sources.command_errors import WrongUse
from reconciler.trust.personal_signatures import configured_key
from schemas.reading.strict_yaml import Refused, load

_LONGEST_KEY = 10_000  # bytes of a .pub file; a larger file is not a public key

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Newcomer:
    mail: str
    is_owner: bool = False
    keys: tuple[Path, ...] = ()
    forge: str | None = None

    def entry(self, old: Entry | None) -> Entry:
        """Their list entry: the old one updated with the given options."""
        entry = dict(old or {"email": self.mail})
        if self.forge is not None:
            entry["forge"] = _account(self.forge)
        keys = dict.fromkeys([*entry.get("keys", ()), *map(_key, self.keys)])
        return entry | ({"keys": list(keys)} if keys else {})


def _account(text: str) -> Entry:
    login, colon, number = text.rpartition(":")
    if not colon or not login or not number.isascii() or not number.isdigit():
        raise WrongUse(f"--forge {text} is not LOGIN:ID; ID is the account's numeric id in the forge's API")
    return {"login": login, "id": int(number)}


def _key(path: Path) -> str:
    try:
        data = path.expanduser().read_bytes()
    except OSError as error:
        raise WrongUse(f"--key {path} cannot be read: {error.strerror}") from error
    if b"PRIVATE KEY" in data or len(data) > _LONGEST_KEY:
        raise WrongUse(f"--key {path} is not a public key; give the matching .pub file")
    return data.decode("utf-8", "replace").strip()


def own_key(repo: str | None) -> str | None:
    """The caller's public key that Git signs with; None: none, or not an SSH key."""
    found = configured_key(Path(repo) if repo and Path(repo).is_dir() else Path.cwd())
    if found is None or isinstance(found, str):
        return found
    public = found if found.suffix == ".pub" else found.with_name(f"{found.name}.pub")
    return _key(public) if public.is_file() else None


def people_of(data: bytes | None) -> dict[str, Entry]:
    """The people named by a slice request, by lower-case address; empty if unreadable."""
    try:
        document: Any = load(data or b"")
        spec = document["spec"]
        entries = [spec["requester"], *spec.get("members", ())]
        return {str(entry["email"]).lower(): dict(entry) for entry in reversed(entries)}
    except (Refused, KeyError, TypeError, AttributeError):
        return {}
