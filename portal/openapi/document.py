"""The OpenAPI document: FastAPI's own, plus authentication, response headers and examples.

Held by tests/portal/test_documented.py and tests/portal/http/test_app.py.
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from portal.http.context import caller_of
from portal.openapi.examples import with_examples

API = "/api/v1"
_TOLD = {
    "X-Request-Id": "Id of this request in logs and, for a write, in the trailer of its commit.",
    "EGS-Commit": "Commit of main behind the answer.",
    "EGS-Status-Commit": "Commit of the status branch behind the answer; empty: there is none yet.",
    "Age": "Seconds since the remote last answered.",
    "ETag": "Send it as If-None-Match to get 304 while nothing has changed.",
}
_SCHEMES: dict[str, dict[str, str]] = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key, or the token of a session that `POST /api/v1/auth` opened.",
    },
    "cookie": {
        "type": "apiKey",
        "in": "cookie",
        "name": "egs",
        "description": "A browser session, from `GET /api/v1/auth/login`; it may change things only from the portal's "
        "own pages. If the portal is served by https, the cookie is named `__Host-egs`.",
    },
}
_EITHER: list[dict[str, list[str]]] = [{"bearer": []}, {"cookie": []}]


def document_of(app: FastAPI) -> dict[str, Any]:
    """The document, built once."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        document["components"]["securitySchemes"] = _SCHEMES
        for route in app.routes:
            if isinstance(route, APIRoute) and route.include_in_schema:
                for method in route.methods or ():
                    operation = document["paths"][route.path_format][method.lower()]
                    operation["security"] = _EITHER if _asks_who(route.dependant) else []
                    _tell(route.path, method.lower(), operation)
        with_examples(document)
        app.openapi_schema = document
    return app.openapi_schema


def _asks_who(dependant: Dependant) -> bool:
    """Whether the path needs a known caller."""
    return dependant.call is caller_of or any(map(_asks_who, dependant.dependencies))


def _tell(path: str, method: str, operation: dict[str, Any]) -> None:
    names = list(_TOLD) if method == "get" and path.startswith(API) else ["X-Request-Id"]
    for status, answer in operation["responses"].items():
        if status.startswith("2"):
            headers = answer.setdefault("headers", {})
            headers |= {name: {"description": _TOLD[name], "schema": {"type": "string"}} for name in names}
    if method == "get" and "application/json" in operation["responses"].get("200", {}).get("content", {}):
        unchanged = {"description": "Unchanged since the ETag that the client sent; no body."}
        operation["responses"].setdefault("304", unchanged)
