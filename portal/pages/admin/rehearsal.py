"""A change by form, tried before it is made: the files that the API's own route would write, and what they would do.

The route runs with a writer that keeps the files instead of pushing them, so the check and the change cannot differ.

Held by tests/portal/pages/test_documents.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import unified_diff
from http import HTTPStatus
from typing import Literal

from starlette.responses import Response

from portal.http.context import Changed
from portal.http.errors import ApiError
from portal.identity.callers import Caller
from portal.pages.forms import Form
from portal.pages.visit import Visit
from portal.views.view import View
from portal.views.what_if import WhatIf, what_if
from portal.writes.proposed_files import ProposedTree
from portal.writes.replayed_answers import Naming, naming_of
from portal.writes.write_request import Changes, Landed, WriteRequest
from reconciler.store.store_port import Store
from schemas.errors import EgsError

Act = Callable[[Visit, Naming], Awaitable[Changed]]
"""Calls the API's route with the parts of that visit."""


@dataclass(frozen=True, slots=True)
class FormField:
    """A field of a form."""

    name: str
    label: str
    value: str = ""
    hint: str = ""
    kind: Literal["text", "number", "email", "textarea", "select"] = "text"
    options: Sequence[str] = ()
    is_required: bool = False

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Options with their texts."""
        return [(option, option or "—") for option in self.options]


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file as it would be."""

    path: str
    text: str
    """Of a new file; empty: it is deleted."""
    difference: str
    """To the present file; empty: it is new."""


@dataclass(frozen=True, slots=True)
class Tried:
    """What a change would write and do."""

    files: tuple[FileChange, ...]
    effect: WhatIf


@dataclass(slots=True)
class _Keeping:
    """`write_request.Writer` that pushes nothing."""

    view: View
    store: Store
    changes: Changes = field(default_factory=dict)

    async def submit(self, write: WriteRequest) -> Landed:
        tree = ProposedTree(self.view, self.store)
        self.changes = await asyncio.to_thread(write.make, self.view, tree)
        return Landed("pushed")

    async def known(self, caller: Caller, key: str) -> Landed | None:  # noqa: ARG002 - the port has it
        return None

    def follow(self, id_: str, caller: Caller) -> Landed | None:  # noqa: ARG002 - the port has it
        return None


async def tried(visit: Visit, act: Act) -> Tried:
    """Raises ApiError as the route does."""
    view, store = visit.view, visit.parts.store
    keeping = _Keeping(view, store)
    await act(replace(visit, parts=replace(visit.parts, writer=keeping)), Naming())
    effect = await visit.parts.costly.answer(what_if, view, store, visit.caller, keeping.changes, visit.now)
    # Git is read beside the event loop, which other callers wait for.
    return Tried(await asyncio.to_thread(_files, view, store, keeping.changes), effect)


def _files(view: View, store: Store, changes: Changes) -> tuple[FileChange, ...]:
    return tuple(_file(view, store, path, data) for path, data in sorted(changes.items()))


def _file(view: View, store: Store, path: str, data: bytes | None) -> FileChange:
    before = ProposedTree(view, store).read(path)
    text = "" if data is None else data.decode()
    if before is None:
        return FileChange(path, text, "")
    lines = unified_diff(before.decode().splitlines(), text.splitlines(), lineterm="", n=2)
    return FileChange(path, text, "\n".join(list(lines)[2:]) or "nothing changes")


@dataclass(frozen=True, slots=True)
class DocumentForm:
    """A page with the form of one document."""

    title: str
    note: str
    path: str
    """Where it is sent."""
    back: str
    """The page that follows."""
    fields: Sequence[FormField]
    deletes: str = ""
    """Where the document is deleted; empty: it cannot be."""
    warning: str = ""
    """Asked before it is deleted."""
    others: Mapping[str, str] = field(default_factory=dict)
    """Links to other pages, by text."""

    def shown(
        self,
        visit: Visit,
        form: Form | None = None,
        found: Tried | None = None,
        error: EgsError | None = None,
    ) -> Response:
        """The page, with what was typed."""
        status = HTTPStatus.OK
        if error is not None:
            status = error.status if isinstance(error, ApiError) else HTTPStatus.UNPROCESSABLE_ENTITY
        values = {each.name: each.value for each in self.fields} | dict(form or {})
        return visit.page(
            "admin/document_form.html", status, about=self, values=values, found=found, error=error
        )

    async def sent(self, visit: Visit, form: Form, act: Act) -> Response:
        """`do=save` makes the change; anything else shows what it would write and do."""
        try:
            if form.get("do") != "save":
                return self.shown(visit, form, await tried(visit, act))
            return await self._done(visit, form, act)
        except EgsError as error:
            return self.shown(visit, form, None, error)

    async def deleted(self, visit: Visit, form: Form, act: Act) -> Response:
        """Deletes the document."""
        try:
            return await self._done(visit, form, act)
        except EgsError as error:
            return self.shown(visit, error=error)

    async def _done(self, visit: Visit, form: Form, act: Act) -> Response:
        named = await naming_of(visit.caller, visit.parts, form.get("key", ""))
        return visit.landed(self.back, await act(visit, named))


def text_of(value: object) -> str:
    """The text of a field; empty: the document says nothing."""
    return "" if value is None else str(value)
