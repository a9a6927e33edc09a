"""`/static/…`: style sheets, scripts and icons from the package, under names that change with their content.

A browser keeps a file for a year, because another content has another address. Nothing comes from another server.
"""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from fastapi import APIRouter, Request
from starlette.responses import Response

from portal.http.errors import not_found

router = APIRouter()
FOLDER = files("portal.pages") / "static"
DIGITS = 12
"""Of the content's digest in its address."""
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "worker-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""No inline script, no inline style, nothing from elsewhere."""
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_FOREVER = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class Asset:
    """A file, plain and compressed."""

    plain: bytes
    packed: bytes
    media_type: str


@cache
def version() -> str:
    """Digest of all files. Scripts import each other by relative addresses, so that all change together."""
    whole = hashlib.sha256()
    for name in sorted(_names(FOLDER, "")):
        whole.update(name.encode() + b"\0" + (FOLDER / name).read_bytes())
    return whole.hexdigest()[:DIGITS]


def address_of_asset(name: str) -> str:
    """The path of that file below the portal's own. KeyError: there is no such file."""
    if name not in _assets():
        raise KeyError(name)
    return f"/static/{version()}/{name}"


@router.get("/static/{digest}/{name:path}", include_in_schema=False)
async def static_file(digest: str, name: str, request: Request) -> Response:
    """The file; under the address of an older version it is answered too, but not kept."""
    found = _assets().get(name)
    if found is None:
        raise not_found("file", name)
    is_packed = "gzip" in request.headers.get("Accept-Encoding", "")
    headers = {
        # A worker obeys the policy of its own script.
        **({"Content-Security-Policy": CSP} if found.media_type == "text/javascript" else {}),
        "Cache-Control": _FOREVER if digest == version() else "no-cache",
        "Vary": "Accept-Encoding",
        **({"Content-Encoding": "gzip"} if is_packed else {}),
    }
    return Response(found.packed if is_packed else found.plain, headers=headers, media_type=found.media_type)


@cache
def _assets() -> dict[str, Asset]:
    """All files, 0.3 MB: read once, compressed once."""
    found = {}
    for name in _names(FOLDER, ""):
        content = (FOLDER / name).read_bytes()
        suffix = name[name.rfind(".") :]
        kind = _TYPES.get(suffix) or mimetypes.guess_type(name)[0] or "text/plain"
        found[name] = Asset(content, gzip.compress(content, mtime=0), kind)
    return found


def _names(folder: Traversable, prefix: str) -> list[str]:
    found: list[str] = []
    for entry in folder.iterdir():
        inner = f"{prefix}{entry.name}"
        found += _names(entry, f"{inner}/") if entry.is_dir() else [inner]
    return found
