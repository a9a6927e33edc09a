"""What every path needs: the parts of the process, the caller, the view, and the envelope of answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, Generic, Literal, Protocol, TypeVar

from fastapi import Depends, Request
from pydantic import AfterValidator, ConfigDict, Field, Strict
from pydantic.alias_generators import to_camel

from portal.http.costly_questions import Costly
from portal.http.error_keys import KEYS
from portal.identity.callers import Caller
from portal.identity.logins import Logins
from portal.settings import PortalSettings
from portal.views.past.past_views import PastViews
from portal.views.view import View
from portal.writes.write_request import Landed, Writer
from reconciler.queries.running.sight import Sources
from reconciler.store.store_port import Store
from schemas.documents.base import Editable
from schemas.reading.units import LINE_PATTERN

Data = TypeVar("Data")


def _one_line(text: str) -> str:
    if re.fullmatch(LINE_PATTERN, text) is None or len(f"{text}.".splitlines()) > 1:
        raise ValueError("this must be one line of text, without control characters")
    return text


Whole = Annotated[int, Strict()]
"""An integer in a body: `true` and `"2"` are refused."""
Flag = Annotated[bool, Strict()]
"""A boolean in a body: `1` and `"yes"` are refused."""
Line = Annotated[str, AfterValidator(_one_line)]
"""A display name in a body: tables, logs and messages show it on one line."""


class Wire(Editable):
    """Data on the wire: camelCase, unknown fields refused. Names that the vendor spells otherwise have an alias."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)


def optional(description: str, **more: Any) -> Any:
    """A field that may be absent."""
    return Field(default=None, description=description, **more)


def example(content: dict[str, Any]) -> ConfigDict:
    """`model_config` with an example for the OpenAPI document."""
    return ConfigDict(json_schema_extra={"examples": [content]})


class ErrorBody(Wire):
    """What went wrong."""

    error_key: str = Field(
        description="Stable identifier for programs: one of `x-extensible-enum`, or with 422 a rule of the controller.",
        json_schema_extra={"x-extensible-enum": list(KEYS)},
    )
    message: str = Field(description="What happened, and what to do.")
    data: dict[str, Any] | None = optional("Details, by kind of error.")


class Envelope(Wire, Generic[Data]):
    """Around every successful answer."""

    status_code: int = Field(default=200, description="The HTTP status.")
    status: str = Field(default="OK", description="The phrase of the HTTP status.")
    message: str = Field(default="Success", description="For people.")
    data: Data


class ErrorEnvelope(Wire):
    """Around every refusal."""

    status_code: int
    status: str
    message: str
    data: None = None
    error: ErrorBody


class Page(Wire, Generic[Data]):
    """One page of a list; pass `next` as `cursor` for the following page."""

    items: Sequence[Data]
    next: str | None = optional("Absent on the last page.")


class Changed(Wire):
    """How far a change has come."""

    model_config = example({"way": "pushed", "commit": "8d5f0a1c6b7e4f2d9a3b5c7d9e1f2a3b4c5d6e7f"})

    way: Literal["pushed", "pull-request", "branch", "accepted"] = Field(
        description="How it reached the repository."
    )
    commit: str | None = optional("The commit; absent until there is one.")
    branch: str | None = optional("The branch proposed for merging.")
    url: str | None = optional("Where to see or follow it.")


def changed(landed: Landed) -> Changed:
    """How far a change has come, on the wire."""
    url = f"/api/v1/writes/{landed.id}" if landed.way == "accepted" else landed.url
    return Changed(
        way=landed.way, commit=landed.commit or None, branch=landed.branch or None, url=url or None
    )


def ok(data: Data, message: str = "Success", status: HTTPStatus = HTTPStatus.OK) -> Envelope[Data]:
    """The envelope of a success."""
    return Envelope(status_code=status.value, status=status.phrase, message=message, data=data)


class HealthOut(Wire):
    """An answer to a probe."""

    ok: bool
    reason: str
    message: str


class Reads(Protocol):
    """The newest view; `portal.views.reader` keeps it so."""

    def view(self) -> View:
        """ApiError 503 before the first read of the repository, and when the last read is too old."""

    @property
    def age_s(self) -> float:
        """Seconds since the remote last answered: the age of every answer."""

    @property
    def stale_in_s(self) -> float:
        """Seconds until `ready` reports the data as too old, if the remote stays silent; below 0 it does already."""

    @property
    def is_ending(self) -> bool:
        """Whether the process is shutting down, so that streams must end."""

    async def newer(self, than: View, within_s: float) -> View:
        """The next view after that one, or the same one if none came in time."""

    async def asked(self) -> View:
        """The newest view after fetching now; unchanged if the remote does not answer."""

    def ready(self) -> HealthOut:
        """Whether the portal can answer, and why not."""

    def wake(self) -> None:
        """Fetch from the remote now."""


@dataclass(frozen=True)
class Parts:
    """The parts of a process; `app.state.parts`."""

    reads: Reads
    writer: Writer
    logins: Logins
    """Identifies callers. Only probes and logins need none."""
    now: Callable[[], datetime]
    store: Store
    """What was fetched: histories, and files of the status branch that are in no view. Safe to use from any thread."""
    settings: PortalSettings
    sources: Sources
    """Pods, values of GPUs and devices, beside the repository."""
    past: PastViews
    """Reads past states."""
    costly: Costly = field(default_factory=Costly)
    """Answers questions that need a plan."""


def parts_of(request: Request) -> Parts:
    parts: Parts = request.app.state.parts
    return parts


async def _parts(request: Request) -> Parts:
    # FastAPI runs a plain function in another thread, which costs more than most answers.
    return parts_of(request)


async def view_of(request: Request) -> View:
    """One view for the whole request; the answer's headers name it."""
    view = parts_of(request).reads.view()
    request.state.view = view
    return view


async def caller_of(request: Request, view: Annotated[View, Depends(view_of)]) -> Caller:
    """The caller, counted; ApiError 401 if unknown, 403 for a foreign page, 429 above the rate limit."""
    return parts_of(request).logins.identify(request, view)


Looking = Annotated[View, Depends(view_of)]
Asking = Annotated[Caller, Depends(caller_of)]
Of = Annotated[Parts, Depends(_parts)]
