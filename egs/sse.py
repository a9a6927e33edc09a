"""Server-sent events from bytes, as in the HTML standard. Pure.

Held by tests/egs/test_sdk_sse.py: however the bytes are split, the messages are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

LONGEST_RETRY_S = 5.0


@dataclass(frozen=True, slots=True)
class Message:
    """One event."""

    event: str
    data: str
    id: str


class Parser:
    """Fed with bytes as they arrive; keeps incomplete messages."""

    def __init__(self, last_id: str = "", retry_s: float = 0.0) -> None:
        self.last_id = last_id
        """Id of the last complete message, from which a new stream continues."""
        self.retry_s = retry_s
        """Seconds that the server asks to wait before a new stream, at most five."""
        self._rest = b""
        self._event = ""
        self._data: list[str] = []
        self._id = last_id

    def feed(self, chunk: bytes) -> Iterator[Message]:
        """The messages that are now complete."""
        text = self._rest + chunk
        # A CR at the end may be the first half of a CRLF.
        held = b"\r" if text.endswith(b"\r") else b""
        *lines, last = text.removesuffix(held).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._rest = last + held
        for line in lines:
            message = self._line(line.decode("utf-8", "replace"))
            if message is not None:
                yield message

    def _line(self, line: str) -> Message | None:
        if not line:
            return self._dispatch()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "retry" and value.isdecimal():
            self.retry_s = min(LONGEST_RETRY_S, int(value) / 1000)
        return None

    def _dispatch(self) -> Message | None:
        self.last_id = self._id
        data, event = self._data, self._event
        self._data, self._event = [], ""
        return Message(event or "message", "\n".join(data), self._id) if data else None
