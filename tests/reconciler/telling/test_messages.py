"""What messages say: people's words filled in, never run, and one line of title (H12)."""

from __future__ import annotations

import pytest

from reconciler.model.events import Event, EventReason
from reconciler.telling.messages import LONGEST_TITLE, message_of
from reconciler.telling.outbox import entry_of
from schemas.documents.notifications import Template
from schemas.status.outbox import Delivery
from tests.support.world import at

DELAYED = entry_of(Event(at(1), EventReason.DELAYED, "a/x starts an hour later", "a/x", "east"))
NODE = entry_of(Event(at(2), EventReason.NODE_BACK, "h100-1 serves again", "", "east", "h100-1"))


def delivery(*entries: object, more: int = 0) -> Delivery:
    return Delivery(id="0", due=at(3), entries=entries, more=more)  # type: ignore[arg-type]


def test_one_event_reads_as_it_is() -> None:
    message = message_of(delivery(DELAYED), Template())
    assert (message.title, message.body, message.warning) == ("GPRDelayed", "a/x starts an hour later", True)
    assert not message_of(delivery(NODE), Template()).warning


@pytest.mark.parametrize(
    ("words", "want"),
    [
        pytest.param(
            "$time $type $reason $request $slice $cluster $node: $message",
            "2026-11-21T08:01:00Z Warning GPRDelayed a/x a east : a/x starts an hour later",
            id="every word",
        ),
        pytest.param("${reason}s cost $$5", "GPRDelayeds cost $5", id="braces and a dollar"),
        pytest.param(
            "$nobody $reason.__class__ $", "$nobody GPRDelayed.__class__ $", id="nothing is evaluated"
        ),
    ],
)
def test_templates_are_filled_in(words: str, want: str) -> None:
    assert message_of(delivery(DELAYED), Template(body=words)).body == want


def test_what_an_event_says_is_never_a_template() -> None:
    sly = entry_of(Event(at(1), EventReason.DELAYED, "$time ${request} %s {0}", "a/x"))
    assert message_of(delivery(sly), Template(title="$message")).title == "$time ${request} %s {0}"


def test_a_digest_has_all_events_in_their_order() -> None:
    message = message_of(delivery(DELAYED, NODE, more=3), Template(body="- $message"))
    assert message.title == "GPRDelayed (and 4 more)"
    assert message.body.splitlines() == [
        "and 3 older events: see `egs get events`",
        "- a/x starts an hour later",
        "- h100-1 serves again",
    ]


def test_what_was_given_up_is_told_by_the_next_that_arrives() -> None:
    body = message_of(delivery(NODE), Template(), lost=1).body
    assert body == "h100-1 serves again\n1 earlier event could not be sent: see `egs get events`"


def test_a_title_is_one_line_and_short_and_no_body_is_empty() -> None:
    long = entry_of(Event(at(1), EventReason.DELAYED, "a\r\nBcc: everybody" + " long" * 100, "a/x"))
    message = message_of(delivery(long, NODE), Template(title="$message", body="$node"))
    assert "\n" not in message.title
    assert "\r" not in message.title
    assert len(message.title) <= LONGEST_TITLE
    assert message.title.endswith("(and 1 more)")
    assert message_of(delivery(DELAYED), Template(body=" $node ")).body == "GPRDelayed"
