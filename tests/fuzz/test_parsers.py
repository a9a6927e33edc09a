"""What strangers send in other forms than manifests: no reader of it fails, whatever the bytes."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.processes.webhooks import refusal
from reconciler.status.parse import record_from
from reconciler.store.git.git_objects import parse_commit, parse_tree, split_signature, with_signature
from reconciler.store.trailers import parse_trailers
from reconciler.trust import openpgp, sshsig
from schemas.errors import UserError
from schemas.rules.problems import MOST_CHARACTERS, quoted
from tests.support.profile import examples

EXAMPLES = examples(300)
MOST_S = 1.0
"""Generous: each takes a thousandth of it."""

WHO = b"Bo <bo@example.com> 1767225600 +0000"
COMMIT = b"tree %s\nparent %s\nauthor %s\ncommitter %s\n" % (b"0" * 40, b"1" * 40, WHO, WHO)
ARMOUR = b"-----BEGIN SSH SIGNATURE-----\nU1NIU0lH\n-----END SSH SIGNATURE-----"
PIECES = st.sampled_from(
    [
        *(
            COMMIT,
            ARMOUR,
            b"gpgsig ",
            b"gpgsig-sha256 ",
            b"\n ",
            b"\n",
            b"\n\n",
            b" ",
            b"\0",
            b"<",
            b">",
            b"-",
            b": ",
        ),
        *(
            b"100644 a\0" + b"x" * 20,
            b"40000 b\0" + b"y" * 20,
            b"99999999999999999999",
            b"\xff\xfe",
            b"\x1b[2J",
        ),
        *(b"On-Behalf-Of: Bo <bo@example.com>\n", b"Term: 1\n", b"Writer: x\n", b"\r\n", b"\xe2\x80\xae"),
        *(
            b"-----BEGIN PGP SIGNATURE-----\n\n",
            b"-----END PGP SIGNATURE-----",
            b"=AAAA",
            b"A" * 64,
            b"A" * 20_000,
        ),
    ]
)
BYTES = st.lists(PIECES | st.binary(max_size=30), max_size=12).map(b"".join)


def text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


READERS: dict[str, Callable[[bytes], object]] = {
    "a commit": lambda data: parse_commit("0" * 40, data),
    "a signature of a commit": split_signature,
    "trailers": lambda data: parse_trailers(text(data)),
    "an SSH signature": lambda data: sshsig.parse(text(data)),
    "a public key": lambda data: sshsig.canonical_key(text(data)),
    "an OpenPGP signature": lambda data: openpgp.packet_of(text(data)),
    "a webhook": lambda data: refusal({"X-Hub-Signature-256": data.decode("latin-1")}, data, (b"secret",)),
    "a text to be told": lambda data: quoted(text(data)),
}


@pytest.mark.parametrize("what", READERS)
@given(data=BYTES)
@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
def test_no_reader_fails_or_takes_long(what: str, data: bytes) -> None:
    began = time.thread_time()
    READERS[what](data)
    assert time.thread_time() - began < MOST_S


@given(BYTES)
@settings(max_examples=EXAMPLES)
def test_a_tree_is_read_or_refused_in_one_way(data: bytes) -> None:
    """`walking` makes a fault of it."""
    with suppress(ValueError):
        list(parse_tree(data))


@given(BYTES, st.sampled_from(["slices/a/gprs/x.yaml", "nodes/east/n.yaml", "controller.yaml", "trust.yaml"]))
@settings(max_examples=EXAMPLES)
def test_a_file_of_the_status_is_read_or_refused_in_two_ways(data: bytes, path: str) -> None:
    """What somebody broke there is told by `reconciler.status.render.UNREADABLE` and stops nothing."""
    with suppress(UserError, ValueError):
        record_from(path, data)


@given(BYTES)
@settings(max_examples=EXAMPLES)
def test_what_is_told_is_one_line_that_prints(data: bytes) -> None:
    got = quoted(text(data))
    assert got.isprintable()
    got.encode()
    if text(data).isprintable() and len(data) <= MOST_CHARACTERS:
        assert got == text(data)


@given(st.binary(max_size=200).filter(lambda body: b"\n\n" not in body))
@settings(max_examples=EXAMPLES)
def test_a_signature_comes_off_a_commit_as_it_was_put_on(body: bytes) -> None:
    payload = COMMIT + b"\n" + body
    signature = ARMOUR.decode() + "\n"
    assert split_signature(with_signature(payload, signature)) == (signature, payload)
