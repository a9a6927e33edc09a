"""The result of each request as CSV. Pure."""

from __future__ import annotations

import csv
import io

from scheduler.replay.record import Record, Run

COLUMNS = ("id", "submit", "first_estimate", "start", "end", "pool", "causes")


def requests_csv(run: Run) -> str:
    """One line per request in the order of the trace; what it did not reach is empty.

    `causes` are the reasons of its slips, each once, in order of appearance, joined by `|`.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(_line(record) for record in run.records)
    return out.getvalue()


def _line(record: Record) -> tuple[str | int | None, ...]:
    return (
        record.name or record.key,
        record.submit,
        record.first_estimate,
        record.start,
        record.end,
        None if record.pool is None else "/".join(filter(None, record.pool)),
        "|".join(record.causes),
    )
