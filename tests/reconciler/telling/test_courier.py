"""Real apprise, real servers on loopback: what arrives, what hangs, and that no address is told anywhere (H12)."""

from __future__ import annotations

import logging
import socket
from collections.abc import Mapping
from datetime import datetime

import pytest

from reconciler.telling import courier
from reconciler.telling.courier import PATIENCE, Answer, Courier, Parcel, sent
from reconciler.telling.messages import Message
from reconciler.telling.route_secrets import Address
from tests.support.kube import eventually
from tests.support.receivers import mailbox, webhook
from tests.support.world import START, at

MESSAGE = Message("GPRDelayed (and 1 more)", "a/x starts later\n<b>h100-1</b> & others serve again", True)


def parcel(*urls: str, id_: str = "0123456789abcdef0123") -> Parcel:
    return Parcel(id_, MESSAGE, tuple(map(Address, urls)))


def answers(carrier: Courier, now: datetime = START) -> Mapping[str, Answer]:
    return eventually(lambda: carrier.returned(now), "an answer", within_s=60)


def test_a_webhook_gets_the_message_and_its_id() -> None:
    with webhook() as hook:
        carrier = Courier()
        assert carrier.send(parcel(hook.url()), at(0))
        assert answers(carrier) == {"0123456789abcdef0123": Answer.DELIVERED}
        (call,) = hook.calls
        assert (call.path, call.delivery, call.body["delivery"]) == (
            "/secret-path", "0123456789abcdef0123", "0123456789abcdef0123",
        )  # fmt: skip
        assert (call.body["title"], call.body["message"]) == (MESSAGE.title, MESSAGE.body)
        assert call.body["type"] == "warning"


def test_a_mail_has_a_subject_the_text_and_its_id() -> None:
    with mailbox() as box:
        url = (
            f"mailto://127.0.0.1:{box.port}?from=egs@example.com&to=ops@example.com&format=text&mode=insecure"
        )
        assert sent(Address(url), MESSAGE, "0123456789abcdef0123") is Answer.DELIVERED
        (mail,) = box.mails
        assert (mail["Subject"], mail["To"]) == (MESSAGE.title, "ops@example.com")
        assert mail["Egs-Delivery"] == "0123456789abcdef0123"
        body = mail.get_body(("plain",))
        assert body is not None
        assert body.get_content().splitlines()[0] == "a/x starts later"


def test_several_addresses_of_a_route_all_get_it_and_none_twice_for_the_sake_of_another() -> None:
    with webhook() as one, webhook() as other:
        other.status = 500
        carrier = Courier()
        carrier.send(parcel(one.url(), other.url()), at(0))
        assert list(answers(carrier).values()) == [Answer.REFUSED]
        other.status = 200
        carrier.send(parcel(one.url(), other.url()), at(1))
        assert list(answers(carrier).values()) == [Answer.DELIVERED]
        assert (len(one.calls), len(other.calls)) == (1, 2)


@pytest.mark.parametrize("status", [301, 400, 404, 429, 500])
def test_only_a_yes_is_a_yes_and_nobody_is_followed_elsewhere(status: int) -> None:
    with webhook() as hook, webhook() as elsewhere:
        hook.status, hook.location = status, f"http://127.0.0.1:{elsewhere.port}/"
        assert sent(Address(hook.url()), MESSAGE, "x") is Answer.REFUSED
        assert elsewhere.calls == []


@pytest.mark.parametrize("url", ["", "nonsense", "nothing://like.this", "json://", "mailto://", "slack://x"])
def test_an_address_that_apprise_does_not_know_is_told_apart(url: str) -> None:
    assert sent(Address(url), MESSAGE, "x") is Answer.UNUSABLE


def test_a_service_that_hangs_holds_up_nobody_and_is_not_tried_again_before_it_ends() -> None:
    with webhook() as hanging, webhook() as other:
        hanging.gate.clear()
        carrier = Courier()
        assert carrier.send(parcel(hanging.url(), id_="slow"), at(0))
        eventually(lambda: hanging.calls, "the call that hangs", within_s=60)
        assert carrier.send(parcel(other.url(), id_="quick"), at(0))
        assert answers(carrier) == {"quick": Answer.DELIVERED}
        assert not carrier.send(parcel(hanging.url(), id_="slow"), at(0)), "it is under way"
        assert carrier.returned(at(0) + PATIENCE) == {"slow": Answer.TIMED_OUT}
        assert not carrier.send(parcel(hanging.url(), id_="slow"), at(2)), "its thread still hangs"
        hanging.gate.set()
        eventually(lambda: carrier.send(parcel(hanging.url(), id_="slow"), at(3)), "it ended", within_s=60)
        assert answers(carrier, at(3)) == {"slow": Answer.DELIVERED}


def test_no_more_are_under_way_at_once_than_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(courier, "MOST_AT_ONCE", 2)
    with webhook() as hook:
        hook.gate.clear()
        carrier = Courier()
        assert [carrier.send(parcel(hook.url(), id_=str(i)), at(0)) for i in range(3)] == [True, True, False]
        hook.gate.set()
        carrier.finish()
        assert set(answers(carrier)) <= {"0", "1"}


class Trips:
    """What a plugin may do that was never thought of."""

    def __init__(self, *_: object, **__: object) -> None:
        raise RuntimeError("secret-word")


def test_whatever_apprise_trips_over_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    import apprise

    monkeypatch.setattr(apprise, "AppriseAsset", Trips)
    assert sent(Address("json://x"), MESSAGE, "x") is Answer.REFUSED


def test_no_log_has_a_word_of_an_address(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nobody = f"json://user:secret-word@127.0.0.1:{closed.getsockname()[1]}/secret-path"
        caplog.set_level(logging.DEBUG)
        with webhook() as hook:
            carrier = Courier()
            urls = [
                hook.url(),
                nobody,
                "nothing://secret-word@host/secret-path",
                "json://user:secret-word@[::",
            ]
            for number, url in enumerate(urls):
                carrier.send(parcel(url, id_=str(number)), at(0))
            carrier.finish()
            assert set(carrier.returned(at(0)).values()) == {
                Answer.DELIVERED, Answer.REFUSED, Answer.UNUSABLE,
            }  # fmt: skip
    said = caplog.text + "".join(capfd.readouterr())
    assert "secret-" not in said
    assert "secret-" not in repr(parcel(*urls))
