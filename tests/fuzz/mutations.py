"""Manifests gone wrong: valid ones, mutated in what they say, in their lines and in their bytes."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

from schemas.reading.yaml_text import dump
from tests.schemas.build import APPROVAL, SPECS, document, kind_of, name_of
from tests.schemas.rules.test_offer_rules import BOUND
from tests.schemas.rules.test_offer_rules import SPEC as KEY
from tests.schemas.rules.test_route_rules import ROUTE
from tests.schemas.rules.test_rule_list import WORD

MORE: dict[str, tuple[str, dict[str, Any]]] = {
    APPROVAL: ("Approval", WORD),
    "requests/robots.yaml": (
        "WorkspaceRequest",
        {"requester": {"email": "di@example.com"}, "clusters": ["east"], "namespaces": ["robots"]},
    ),
    "keys/ci.yaml": ("ApiKey", KEY),
    "bindings/nlp.yaml": ("GPRTemplateBinding", BOUND),
    "people/bo.yaml": ("Profile", {"email": "bo@example.com", "notifications": [ROUTE]}),
}
DOCUMENTS = {
    **{path: document(kind_of(path), name_of(path), spec) for path, spec in SPECS.items()},
    **{path: document(kind, name_of(path), spec) for path, (kind, spec) in MORE.items()},
}
"""Every kind that people write, by path."""

VALUES = st.sampled_from(
    [
        *(
            None,
            True,
            False,
            0,
            -1,
            1,
            2**31,
            2**53,
            -(2**53),
            0.5,
            1e300,
            "",
            " ",
            "no",
            "010",
            "1:30",
            "null",
        ),
        *("9" * 40, "x" * 5000, "0d0h0m", "9999w", "-1h", "2026-13-45T99:99:99Z", "0001-01-01T00:00:00Z"),
        *(
            "a/b",
            "../../x",
            "-",
            "*",
            "&a",
            "!!x",
            "{",
            "%",
            "@",
            "`",
            "|",
            "$(id)",
            "<script>",
            "a\nb",
            "a\tb",
        ),
        *(
            "\u00e9",
            "\u0430",
            "\U0001f680",
            "ssh-ed25519 " + "A" * 68,
            "gpg:" + "F" * 40,
            "sha256:" + "0" * 64,
        ),
        *(
            [],
            {},
            [[]],
            [{}],
            {"": ""},
            ["x"] * 2000,
            {f"k{i}": i for i in range(500)},
            [{"email": "a@b"}] * 300,
        ),
    ]
)
SNIPPETS = st.sampled_from(
    [
        *(
            b"{",
            b"}",
            b"[",
            b"]",
            b": ",
            b":",
            b"\n",
            b"\n\n",
            b"- ",
            b"  ",
            b"\t",
            b"? ",
            b"#",
            b", ",
            b"'",
            b'"',
        ),
        *(
            b"&a ",
            b"*a",
            b"!!x ",
            b"<<: ",
            b"---\n",
            b"...\n",
            b"%YAML 1.1\n",
            b"|\n",
            b">-\n",
            b"\r",
            b"\r\n",
        ),
        *(
            b"no",
            b"010",
            b"1e5",
            b"0x1",
            b"1_0",
            b".inf",
            b"2026-11-21",
            b"\\x",
            b"\\u202e",
            b"\0",
            b"\x1b[2J",
        ),
        *(b"\xff", b"\xc0\xae", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xe2\x80\xae", b"\xf0\x9f\x9a\x80"),
        *(b"[" * 40, b"{a: " * 40, b"- " * 500, b"x" * 3000, b"9" * 3000, b"a: 1\n" * 50, b"#" * 70_000),
    ]
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, below in inner for place in _places(below, (*path, key)))]


@st.composite
def said(draw: st.DrawFn, content: Any) -> Any:
    """The document with one value changed, left out, doubled or given under another name."""
    changed = deepcopy(content)
    path = draw(st.sampled_from([place for place in _places(changed) if place]))
    around = changed
    for step in path[:-1]:
        around = around[step]
    what = draw(st.sampled_from(["put", "put", "put", "drop", "wrap", "rename"]))
    if what == "drop":
        del around[path[-1]]
    elif what == "wrap":
        around[path[-1]] = draw(st.sampled_from([[around[path[-1]]] * 3, {"x": around[path[-1]]}]))
    elif what == "rename" and isinstance(around, dict):
        around[draw(st.sampled_from(["x", "Spec", "spec ", "name", "kind", "slice"]))] = around.pop(path[-1])
    else:
        around[path[-1]] = draw(VALUES)
    return changed


@st.composite
def manifests(draw: st.DrawFn) -> tuple[str, bytes]:
    """A path where documents lie, and what somebody might have put there."""
    path = draw(st.sampled_from(sorted(DOCUMENTS)))
    content: Any = DOCUMENTS[path]
    for _ in range(draw(st.integers(0, 3))):
        content = draw(said(content))
    data = dump(content).encode()
    for _ in range(draw(st.integers(0, 3))):
        at, cut = draw(st.integers(0, len(data))), draw(st.integers(0, 12))
        put = draw(SNIPPETS | st.binary(max_size=6))
        data = data[:at] + put + data[at + cut :]
    if draw(st.booleans()):
        lines = data.split(b"\n")
        chosen = draw(st.integers(0, len(lines) - 1))
        data = b"\n".join([*lines[:chosen], lines[chosen] * draw(st.integers(0, 3)), *lines[chosen:]])
    return path, data
