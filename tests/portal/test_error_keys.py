"""docs/reference/api.md lists every key that the code can answer with, and no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
REFUSALS = {"ApiError", "conflict", "not_found", "unauthenticated"}
"""Functions that take a key; others have one of their own in portal/http/errors.py."""
ELSEWHERE = {
    "NoSuchPath", "MethodNotAllowed", "Unauthenticated", "NotProvisioned", "SignatureMissing", "SignatureWrong",
}  # fmt: skip
"""Keys that are defaults or named values in the code, and so no arguments."""
_KEY = re.compile(r"[A-Z][A-Za-z]+")


def keys_in(file: Path) -> Iterator[str]:
    """Texts that look like keys among the arguments of refusals."""
    for node in ast.walk(ast.parse(file.read_text())):
        if (
            isinstance(node, ast.Call)
            and getattr(node.func, "id", getattr(node.func, "attr", "")) in REFUSALS
        ):
            for value in (*node.args, *(keyword.value for keyword in node.keywords)):
                if isinstance(value, ast.Constant) and _KEY.fullmatch(str(value.value)):
                    yield str(value.value)


def test_every_key_is_listed() -> None:
    """K1: errors are documented values."""
    code = {key for file in sorted((ROOT / "portal").rglob("*.py")) for key in keys_in(file)} | ELSEWHERE
    _, _, table = (ROOT / "docs/reference/api.md").read_text().partition("## Errors")
    rows = [
        line.split("|")[1] for line in table.partition("## Webhooks")[0].splitlines() if line.startswith("|")
    ]
    listed = {key for row in rows[2:] for key in _KEY.findall(row)}
    assert listed - code == set(), "listed and never answered"
    assert code - listed == set(), "answered and not listed"
