"""What every path needs: the parts of the process, the caller, the view, and the envelope of an answer."""

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
from portal.views.view import View
from portal.writes.write_request import Landed, Writer
from reconciler.store.store_port import Store
from schemas.documents.base import Editable
from schemas.reading.units import LINE_PATTERN

Data = TypeVar("Data")


def _one_line(text: str) -> str:
    if re.fullmatch(LINE_PATTERN, text) is None or len(f"{text}.".splitlines()) > 1:
        raise ValueError("this has to be one line of text, without control characters")
    return text


Whole = Annotated[int, Strict()]
"""A number of a body: `true` and `"2"` are none."""
Flag = Annotated[bool, Strict()]
"""A truth of a body: `1` and `"yes"` are none."""
Line = Annotated[str, AfterValidator(_one_line)]
"""A name of a body, for people: tables, logs and messages show it in one line."""


class Wire(Editable):
    """What goes over the wire: camelCase, unknown fields refused. Names that the vendor spells otherwise say so."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)


class ErrorBody(Wire):
    """What went wrong."""

    error_key: str = Field(
        description="Stable word for programs: one of `x-extensible-enum`, or with 422 a rule of the controller's.",
        json_schema_extra={"x-extensible-enum": list(KEYS)},
    )
    message: str = Field(description="What is so, and what to do.")
    data: dict[str, Any] | None = Field(default=None, description="More, by kind of error.")


class Envelope(Wire, Generic[Data]):
    """Around every answer."""

    status_code: int = Field(default=200, description="As the HTTP status.")
    status: str = Field(default="OK", description="Its phrase.")
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
    """Some of many; `next` is given back as `cursor` for those behind them."""

    items: Sequence[Data]
    next: str | None = Field(default=None, description="Absent: these were the last.")


class Changed(Wire):
    """Where a change is now."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"way": "pushed", "commit": "8d5f0a1c6b7e4f2d9a3b5c7d9e1f2a3b4c5d6e7f"}]
        }
    )

    way: Literal["pushed", "pull-request", "branch", "accepted"] = Field(
        description="How it reached the repository."
    )
    commit: str | None = Field(default=None, description="The commit; absent: there is none yet.")
    branch: str | None = Field(default=None, description="Branch that asks to be merged.")
    url: str | None = Field(default=None, description="Where to look, or to follow it.")


def changed(landed: Landed) -> Changed:
    """The same over the wire."""
    url = f"/api/v1/writes/{landed.id}" if landed.way == "accepted" else landed.url
    return Changed(
        way=landed.way, commit=landed.commit or None, branch=landed.branch or None, url=url or None
    )


def ok(data: Data, message: str = "Success", status: HTTPStatus = HTTPStatus.OK) -> Envelope[Data]:
    """The envelope of a success."""
    return Envelope(status_code=status.value, status=status.phrase, message=message, data=data)


@dataclass(frozen=True, slots=True)
class Ready:
    """Whether answers can be given, and why not."""

    ok: bool
    reason: str
    message: str


class Reads(Protocol):
    """The newest view; `portal.views.reader` keeps it so."""

    def view(self) -> View:
        """ApiError 503 before the repository was read for the first time, and when that is too long ago."""

    @property
    def age_s(self) -> float:
        """Seconds since the remote last answered: how old every answer is."""

    @property
    def is_ending(self) -> bool:
        """Whether the process is about to end, so that streams should."""

    async def newer(self, than: View, within_s: float) -> View:
        """The next view after that one, or the same when none came in that time."""

    async def asked(self) -> View:
        """The newest view, with the remote asked from now on; where it does not answer, as it was."""

    def ready(self) -> Ready:
        """Whether answers can be given, and why not."""

    def wake(self) -> None:
        """Ask the remote now."""


@dataclass(frozen=True)
class Parts:
    """What a process is made of; `app.state.parts`. More in `portal.http.app`."""

    reads: Reads
    writer: Writer
    logins: Logins
    """Who asks. Nothing is answered before that is known, but health and logging in."""
    now: Callable[[], datetime]
    store: Store
    """What was fetched: histories, and files of the status branch that no view has. Safe to use from any thread."""
    settings: PortalSettings
    costly: Costly = field(default_factory=Costly)
    """Where questions are answered that cost a plan."""


def parts_of(request: Request) -> Parts:
    """Of the process that answers."""
    parts: Parts = request.app.state.parts
    return parts


async def _parts(request: Request) -> Parts:
    # What is no coroutine FastAPI runs in another thread, which costs more than most answers.
    return parts_of(request)


async def view_of(request: Request) -> View:
    """One view for the whole of a request; the answer's headers name it."""
    view = parts_of(request).reads.view()
    request.state.view = view
    return view


async def caller_of(request: Request, view: Annotated[View, Depends(view_of)]) -> Caller:
    """Who asks, counted; ApiError 401 for nobody, 403 for a foreign page, 429 for who asks too often."""
    return parts_of(request).logins.identify(request, view)


Looking = Annotated[View, Depends(view_of)]
Asking = Annotated[Caller, Depends(caller_of)]
Of = Annotated[Parts, Depends(_parts)]
