"""The operator's folder with the addresses of routes, read anew each time: a Secret that was changed counts at once.

No manifest names an address. It names a secret, and the folder has it under a name that begins with whose route it is,
so that nobody's route can use another's. Nothing of an address is in any text, log or repr.

Held by tests/reconciler/telling/test_route_secrets.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from schemas.errors import UserError

MOST_ADDRESSES = 10
"""Of one route; a list of people is one address of a mailing list."""
MOST_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Address:
    """Where a message goes, as apprise writes it; mostly with a password in it."""

    url: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Secrets:
    """One folder; a file for each secret, with an address a line and comments behind `#` at the start of one."""

    folder: Path

    def read(self, name: str) -> tuple[Address, ...]:
        """The addresses; raises UserError `SecretMissing` with a sentence that says what to do."""
        path = self.folder / name
        try:
            data = path.read_bytes()[: MOST_BYTES + 1]
            lines = [line.strip() for line in data.decode().splitlines()]
        except (OSError, UnicodeDecodeError) as error:
            why = f"file {name} in the folder of --routes cannot be read ({type(error).__name__})"
            raise UserError(f"{why}; an operator writes an address a line into it", "SecretMissing") from None
        found = tuple(dict.fromkeys(line for line in lines if line and not line.startswith("#")))
        if len(data) > MOST_BYTES or not 0 < len(found) <= MOST_ADDRESSES:
            why = f"file {name} in the folder of --routes holds {len(found)} addresses"
            raise UserError(f"{why}; 1 to {MOST_ADDRESSES} belong there, one a line", "SecretMissing")
        return tuple(map(Address, found))
