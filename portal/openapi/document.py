"""The OpenAPI document: FastAPI's own, with how callers show who they are, the headers of answers, and examples.

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
    "X-Request-Id": "Names this request in logs and, of a write, in the trailer of its commit.",
    "EGS-Commit": "Commit of main that the answer is made of.",
    "EGS-Status-Commit": "Commit of the status branch that the answer is made of; empty: there is none yet.",
    "Age": "Seconds since the remote answered.",
    "ETag": "Give it as If-None-Match to get 304 while nothing is new.",
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
        "description": "A browser's session, from `GET /api/v1/auth/login`; it writes from the portal's own pages "
        "alone. Where the portal is reached by https the cookie is called `__Host-egs`.",
    },
}
_EITHER: list[dict[str, list[str]]] = [{"bearer": []}, {"cookie": []}]


def document_of(app: FastAPI) -> dict[str, Any]:
    """The document, made once."""
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
    """Whether nobody is answered who is not known."""
    return dependant.call is caller_of or any(map(_asks_who, dependant.dependencies))


def _tell(path: str, method: str, operation: dict[str, Any]) -> None:
    names = list(_TOLD) if method == "get" and path.startswith(API) else ["X-Request-Id"]
    for status, answer in operation["responses"].items():
        if status.startswith("2"):
            headers = answer.setdefault("headers", {})
            headers |= {name: {"description": _TOLD[name], "schema": {"type": "string"}} for name in names}
    if method == "get" and "application/json" in operation["responses"].get("200", {}).get("content", {}):
        unchanged = {"description": "As the caller has it already, by its ETag; without a body."}
        operation["responses"].setdefault("304", unchanged)
