"""The application: all paths of the API, their error handlers and the middleware.

Held by tests/portal/http/test_app.py and, as a whole, by the schemathesis test.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from functools import cache
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import Response

from portal import pages, routes
from portal.http import docs_page, health, webhooks
from portal.http.below_prefix import BelowPrefix
from portal.http.context import Parts
from portal.http.errors import ApiError, bad_parameters, unavailable
from portal.http.headers import Around, error_answer
from portal.http.validation_errors import mistake
from portal.openapi.document import API, document_of
from portal.openapi.refusals import refusals
from portal.pages.page_errors import error_page, is_page
from reconciler.sources.command_errors import NotFound
from schemas.errors import EgsError, UserError

VERSION = "1"
DESCRIPTION = (
    "Everything that people do with `egs` and Git, for programs. Every write becomes a commit or a pull request by the "
    "caller; every read is of one commit, which the headers name."
)
OFTEN = ("gpr", "waittime")
"""Modules of paths that programs call most."""
MOST_MISTAKES = 10
"""Errors reported per request."""


def create_app(parts: Parts, prefix: str = "") -> FastAPI:
    """The application over these parts, below that path of its host. Starts and stops nothing."""
    app = FastAPI(title="EGS", version=VERSION, description=DESCRIPTION, docs_url=None, redoc_url=None)
    app.state.parts = parts
    app.router.routes.extend(_paths().routes)
    app.add_exception_handler(ApiError, _refused)
    app.add_exception_handler(EgsError, _translated)
    app.add_exception_handler(RequestValidationError, _mistaken)
    app.add_exception_handler(HTTPException, _elsewhere)
    app.add_middleware(Around, parts=parts, refusal=_answer)
    app.add_middleware(BelowPrefix, prefix=prefix)
    app.openapi = lambda: document_of(app)  # type: ignore[method-assign]  # as FastAPI's manual says
    return app


@cache
def _paths() -> APIRouter:
    """Every path. They hold no parts, so that all applications of a process share them: making them takes 0.2 s."""
    paths = APIRouter()
    for router in (health.router, webhooks.router, docs_page.router):
        _place(paths, router, "", {})
    for router in found_routers():
        _place(paths, router, API, refusals(400, 404, 408, 413, 422))
    for router in found_pages():
        _place(paths, router, "", {})
    return paths


def _place(
    paths: APIRouter, router: APIRouter, prefix: str, more: Mapping[int | str, dict[str, Any]]
) -> None:
    """Add routes themselves: looking them up in a nested router costs half as much as an answer."""
    for route in router.routes:
        assert isinstance(route, APIRoute), "routers have paths, and no routers inside"
        paths.add_api_route(
            prefix + route.path,
            route.endpoint,
            response_model=route.response_model,
            status_code=route.status_code,
            tags=route.tags,
            dependencies=route.dependencies,
            summary=route.summary,
            description=route.description,
            responses={**more, **route.responses},
            methods=list(route.methods or ()),
            operation_id=route.operation_id,
            include_in_schema=route.include_in_schema,
            response_class=route.response_class,
            response_model_exclude_none=route.response_model_exclude_none,
            response_model_exclude_unset=route.response_model_exclude_unset,
            response_model_by_alias=route.response_model_by_alias,
            name=route.name,
            openapi_extra=route.openapi_extra,
        )


def found_routers() -> Iterator[APIRouter]:
    """Routers of all modules in `portal.routes`; the most used come first, because they are matched first."""
    found = [m.name for m in pkgutil.walk_packages(routes.__path__, f"{routes.__name__}.") if not m.ispkg]
    for name in sorted(found, key=lambda name: (name.rpartition(".")[2] not in OFTEN, name)):
        router: APIRouter = importlib.import_module(name).router
        yield router


def found_pages() -> Iterator[APIRouter]:
    """Routers of all modules in `portal.pages` that have one."""
    for module in pkgutil.walk_packages(pages.__path__, f"{pages.__name__}."):
        router = getattr(importlib.import_module(module.name), "router", None)
        if isinstance(router, APIRouter):
            yield router


def _answer(request: Request, error: ApiError) -> Response:
    return error_page(request, error) if is_page(request) else error_answer(error)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return _answer(request, error)


async def _translated(request: Request, error: Exception) -> Response:
    """Refusals of shared code; a fault of the world is 503."""
    assert isinstance(error, EgsError)
    if isinstance(error, NotFound):
        return _answer(request, ApiError(HTTPStatus.NOT_FOUND, "NotFound", str(error)))
    if isinstance(error, UserError):
        return _answer(request, ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, error.reason, str(error)))
    return _answer(request, unavailable(str(error)))


async def _mistaken(request: Request, error: Exception) -> Response:
    """Says where and what is wrong, never what was sent: it may be a secret."""
    assert isinstance(error, RequestValidationError)
    errors = error.errors()
    if any(one["type"] == "json_invalid" for one in errors[:MOST_MISTAKES]):
        return _answer(request, ApiError(HTTPStatus.BAD_REQUEST, "BadRequest", "the body is not valid JSON"))
    found = [mistake(one) for one in errors[:MOST_MISTAKES]]
    more = f"; and {len(errors) - MOST_MISTAKES} more" if len(errors) > MOST_MISTAKES else ""
    return _answer(request, bad_parameters("; ".join(found) + more))


async def _elsewhere(request: Request, error: Exception) -> Response:
    """Unknown path or method."""
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    key, text = {
        404: ("NoSuchPath", "there is no such path; /openapi.json lists all"),
        405: ("MethodNotAllowed", "this path does not support that method; /openapi.json lists all"),
    }.get(error.status_code, ("BadRequest", "the request cannot be read"))
    return _answer(request, ApiError(status, key, text, headers=error.headers))
