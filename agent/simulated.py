"""A reader of simulated GPUs: from a simulated cluster, or from a JSON file.

The source gives one mapping per GPU, with the field names of `GpuReading`; absent fields are None. Xid events carry
their time, and each is returned once, as by the real driver.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from agent.port import GpuReading
from schemas.errors import UserError

Source = Callable[[datetime], Sequence[Mapping[str, object]]]

_READINGS = TypeAdapter(tuple[GpuReading, ...])
_NAMES = frozenset(f.name for f in fields(GpuReading))


class SimulatedReader:
    """`agent.port.Reader` over any source of plain data."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._read_at = datetime.min.replace(tzinfo=UTC)

    def read(self, now: datetime) -> tuple[GpuReading, ...]:
        """Every GPU of the source, with the Xid events since the last read."""
        since, self._read_at = self._read_at, now
        readings = sorted(_checked(self._source(now)), key=lambda r: (r.index, r.uuid))
        return tuple(replace(r, xids=tuple(x for x in r.xids if since < x.at <= now)) for r in readings)

    def release(self) -> None:
        """Nothing is held."""


def file_source(path: Path) -> Source:
    """Reads the file every time, so that it can be edited while the agent runs."""

    def read(_: datetime) -> Sequence[Mapping[str, object]]:
        try:
            found = json.loads(path.read_bytes())
        except (OSError, ValueError) as error:
            raise _invalid(f"{path} cannot be read as JSON") from error
        if not isinstance(found, list):
            raise _invalid(f"{path} is not a list of GPUs")
        return found

    return read


def _checked(data: Sequence[Mapping[str, object]]) -> tuple[GpuReading, ...]:
    unknown = sorted({str(name) for gpu in data if isinstance(gpu, Mapping) for name in gpu} - _NAMES)
    if unknown:
        raise _invalid(f"a simulated GPU has no field {unknown[0]!r}")
    try:
        return _READINGS.validate_python(tuple(data))
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise _invalid(f"simulated GPU, field {where}: {error.errors()[0]['msg']}") from error


def _invalid(what: str) -> UserError:
    return UserError(
        f"{what}; expected is a JSON list of objects with {', '.join(sorted(_NAMES))}", "BadReadings"
    )
