"""Server-sent events: however the bytes are cut, the messages are the same. D14."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from egs.sse import Message, Parser
from tests.support.profile import law

STREAM = (
    ': keep-alive\n\nid: c1\nevent: gpr\ndata: {"a":\ndata: "ü\u2028"}\n\n: keep-alive\r\n\r\n'
    "event: gpr\r\ndata:{}\r\nid: c2\r\nretry: 5\r\n\r\ndata: last\r\r"
).encode()
WANT = [
    Message("gpr", '{"a":\n"ü\u2028"}', "c1"),
    Message("gpr", "{}", "c2"),
    Message("message", "last", "c2"),
]


def _parsed(chunks):
    parser = Parser()
    return [message for chunk in chunks for message in parser.feed(chunk)], parser.last_id


@law(200)
@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_however_the_bytes_are_cut(cuts):
    at = [0, *sorted(cuts), len(STREAM)]
    found, last_id = _parsed([STREAM[a:b] for a, b in pairwise(at)] + [b"\n"])
    assert found == WANT
    assert last_id == "c2"


@pytest.mark.parametrize(
    ("stream", "want"),
    [
        pytest.param(b"data: half", [], id="half a message is none"),
        pytest.param(b"id: 7\n\n", [], id="an id alone is no message"),
        pytest.param(b"id: a\0b\ndata: x\n\n", [Message("message", "x", "")], id="no NUL in an id"),
    ],
)
def test_messages(stream, want):
    assert _parsed([stream])[0] == want


def test_an_id_alone_is_where_a_new_stream_goes_on():
    assert _parsed([b"id: 7\n\n"])[1] == "7"


def test_an_id_of_half_a_message_is_not():
    assert _parsed([b"id: 7\ndata: x\n"])[1] == ""
