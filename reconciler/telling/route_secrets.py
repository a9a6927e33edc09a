"""The operator's folder with the addresses of routes, read at each use: a changed Secret counts at once.

Manifests contain no addresses, only the name of a secret; the folder has it under a name that begins with the
route's owner, so that a route cannot use another owner's secret. Addresses appear in no text, log or repr.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from schemas.errors import UserError

MOST_ADDRESSES = 10
"""Per route; for more people use a mailing list."""
MOST_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Address:
    """A message's destination, in apprise's format; usually contains a password."""

    url: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Secrets:
    """One folder; a file per secret, with an address per line and comment lines beginning with `#`."""

    folder: Path

    def read(self, name: str) -> tuple[Address, ...]:
        """The addresses; raises UserError `SecretMissing` that says what to do."""
        path = self.folder / name
        try:
            data = path.read_bytes()[: MOST_BYTES + 1]
            lines = [line.strip() for line in data.decode().splitlines()]
        except (OSError, UnicodeDecodeError) as error:
            why = f"file {name} in the folder of --routes cannot be read ({type(error).__name__})"
            raise UserError(
                f"{why}; an operator must create it with one address per line", "SecretMissing"
            ) from None
        found = tuple(dict.fromkeys(line for line in lines if line and not line.startswith("#")))
        if len(data) > MOST_BYTES or not 0 < len(found) <= MOST_ADDRESSES:
            why = f"file {name} in the folder of --routes contains {len(found)} addresses"
            raise UserError(f"{why}; it must contain 1 to {MOST_ADDRESSES}, one per line", "SecretMissing")
        return tuple(map(Address, found))
