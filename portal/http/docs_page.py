"""`/docs`: the paths of the API on one page, without scripts or external resources."""

from __future__ import annotations

from html import escape
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

router = APIRouter()

_STYLE = (
    "body{font:15px/1.5 sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "code{font-size:14px}table{border-collapse:collapse;width:100%}"
    "td{border-top:1px solid #ccc;padding:.3rem .6rem;vertical-align:top}"
)


@router.get("/docs", include_in_schema=False, response_class=HTMLResponse)
async def docs(request: Request) -> HTMLResponse:
    """Rendered from the OpenAPI document, which has the details."""
    return HTMLResponse(page(request.app.openapi()))


def page(document: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr><td><code>{method.upper()}</code></td><td><code>{escape(path)}</code></td>"
        f"<td>{escape(operation.get('summary', ''))}</td></tr>"
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    )
    title = escape(f"{document['info']['title']} API {document['info']['version']}")
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
        f"<h1>{title}</h1><p>{escape(document['info']['description'])} The full document: "
        f'<a href="/openapi.json">openapi.json</a>.</p><table>{rows}</table></html>'
    )
