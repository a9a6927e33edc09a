"""What a reader of a page sees and can send: its text, its rows, its links and its forms, from the HTML alone.

`page(site.client("bo-owner"), "/requests")` asks as a browser does; `send(client, found, "/requests", name="x")`
sends the form with that action as it stands, with some fields changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from html.parser import HTMLParser

import httpx
from starlette.testclient import TestClient

HTML = {"Accept": "text/html"}
_VOID = {"input", "meta", "link", "br", "hr", "use", "path", "img"}
_INLINE = {"a", "code", "span", "strong", "time", "button", "svg"}


@dataclass
class Node:
    """An element; a text has no tag."""

    tag: str = ""
    at: dict[str, str] = field(default_factory=dict)
    inner: list[Node] = field(default_factory=list)
    said: str = ""

    def all(self, *tags: str) -> Iterator[Node]:
        """Elements within, in order."""
        for one in self.inner:
            if one.tag in tags:
                yield one
            yield from one.all(*tags)

    @property
    def text(self) -> str:
        """With single spaces."""
        return re.sub(r"\s+", " ", self._words()).strip()

    def _words(self) -> str:
        inner = self.said + "".join(one._words() for one in self.inner)
        return inner if self.tag in _INLINE or not self.tag else f" {inner} "


class _Tree(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.root = Node()
        self._open = [self.root]
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        made = Node(tag, {name: value or "" for name, value in attrs})
        self._open[-1].inner.append(made)
        if tag not in _VOID:
            self._open.append(made)

    def handle_endtag(self, tag: str) -> None:
        if any(one.tag == tag for one in self._open):
            while self._open.pop().tag != tag:
                pass

    def handle_data(self, data: str) -> None:
        self._open[-1].inner.append(Node(said=data))


@dataclass(frozen=True)
class Found:
    """A page that was read."""

    status: int
    html: str

    @cached_property
    def root(self) -> Node:
        return _Tree(self.html).root

    @property
    def text(self) -> str:
        return self.root.text

    @property
    def rows(self) -> list[list[str]]:
        """Rows of all tables without their headings, each cell as its text."""
        bodies = self.root.all("tbody")
        return [[cell.text for cell in row.all("th", "td")] for body in bodies for row in body.all("tr")]

    @property
    def links(self) -> dict[str, str]:
        """Addresses by text; of several with one text the first."""
        return {one.text: one.at.get("href", "") for one in reversed(list(self.root.all("a")))}

    @property
    def forms(self) -> dict[str, dict[str, str]]:
        """Fields with their values by the form's address, of forms that change something."""
        forms = [one for one in self.root.all("form") if one.at.get("method") == "post"]
        return {one.at["action"]: dict(self._fields(one)) for one in reversed(forms)}

    def _fields(self, form: Node) -> Iterator[tuple[str, str]]:
        name = form.at.get("id")
        everywhere = self.root.all("input", "select", "textarea")
        others = [one for one in everywhere if name and one.at.get("form") == name]
        for one in [*form.all("input", "select", "textarea"), *others]:
            value = _value(one)
            if value is not None and one.at.get("name"):
                yield one.at["name"], value


def _value(one: Node) -> str | None:
    """What would be sent; None: nothing."""
    if one.tag == "textarea":
        return "".join(text.said for text in one.inner).removeprefix("\n")
    if one.tag == "select":
        options = list(one.all("option"))
        chosen = next((o for o in options if "selected" in o.at), options[0])
        return chosen.at.get("value", chosen.text)
    if one.at.get("type") in ("checkbox", "radio") and "checked" not in one.at:
        return None
    return one.at.get("value", "on")


def read(answer: httpx.Response) -> Found:
    return Found(answer.status_code, answer.text)


def page(client: TestClient, path: str, status: int = 200) -> Found:
    """The page; it must have that status."""
    answer = client.get(path, headers=HTML)
    assert answer.status_code == status, answer.text[-2000:]
    return read(answer)


def send(client: TestClient, found: Found, action: str, **changed: str) -> httpx.Response:
    """The answer to the page's form with that action, not followed."""
    return client.post(action, data=found.forms[action] | changed, headers=HTML, follow_redirects=False)
