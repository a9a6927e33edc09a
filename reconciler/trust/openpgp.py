"""OpenPGP signatures of commits: reduced to one plain packet, then checked by `gpg` with the operator's keys.

`gpg` accepts nested and compressed packets, several signatures and much else; an honest commit has one packet
of one kind, and only that is passed on. The keys live in a temporary home: no system keyring, no agent, no
network.

Held by tests/reconciler/trust/test_openpgp.py, against the real `gpg`.
"""

from __future__ import annotations

import base64
import binascii
import re
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path

from reconciler.trust import signature_programs
from reconciler.trust.keyring import GPG, gpg_files
from schemas.errors import Fault, UserError

BEGIN, END = "-----BEGIN PGP SIGNATURE-----", "-----END PGP SIGNATURE-----"
LONGEST = 16_384
"""Characters of a signature; an RSA key with 16,384 bits needs a fifth of that."""

_SIGNATURE_TAG = 2
_VERSION, _BINARY = 4, 0x00  # the only version that gpg makes, over binary data
_STRONG_HASHES = frozenset({8, 9, 10})  # SHA-256, SHA-384, SHA-512
_OPTIONS = (
    "--no-options", "--batch", "--no-tty", "--quiet", "--no-autostart", "--disable-dirmngr",
    "--no-auto-key-retrieve", "--no-auto-key-locate", "--trust-model", "always", "--status-fd", "1",
)  # fmt: skip
_STATUS = b"[GNUPG:] "
_FINGERPRINT = re.compile(rb"[0-9A-F]{40}")


def is_openpgp(signature: str) -> bool:
    """True if the text claims to be OpenPGP."""
    return signature.startswith(BEGIN)


def packet_of(armoured: str) -> bytes | None:
    """The one signature packet in an armoured text; None for anything else."""
    if len(armoured) > LONGEST or not armoured.isascii():
        return None
    lines = armoured.rstrip("\n").split("\n")
    if lines[0] != BEGIN or lines[-1] != END or "" not in lines[:-1]:
        return None
    body = lines[lines.index("") + 1 : -1]  # after headers like `Comment: …`
    if body and re.fullmatch(r"=[A-Za-z0-9+/]{4}", body[-1]):
        body.pop()  # a checksum against transmission errors
    try:
        packet = base64.b64decode("".join(body), validate=True)
    except (binascii.Error, ValueError):
        return None
    content = _content(packet)
    return packet if content is not None and _is_plain(content) else None


def _content(packet: bytes) -> bytes | None:
    """The content of a signature packet; None for another packet, or more than one."""
    head = packet[0] if packet else 0
    if head & 0xC0 == 0xC0:
        tag, start, size = head & 0x3F, *_new_size(packet)
    else:
        width = 1 << (head & 0x03)  # 8: indeterminate length
        tag, start = (head & 0x3C) >> 2, 1 + width
        size = int.from_bytes(packet[1:start], "big") if width < 8 else -1
    fits = head & 0x80 and tag == _SIGNATURE_TAG and start + size == len(packet)
    return packet[start:] if fits else None


def _new_size(packet: bytes) -> tuple[int, int]:
    """Where the content starts, and its size; -1 for a packet in parts."""
    first = packet[1] if len(packet) > 1 else 224
    if first < 192:
        return 2, first
    if first < 224:
        return 3, ((first - 192) << 8) + int.from_bytes(packet[2:3], "big") + 192
    return 6, int.from_bytes(packet[2:6], "big") if first == 255 else -1


def _is_plain(content: bytes) -> bool:
    return (
        len(content) > 10
        and content[0] == _VERSION
        and content[1] == _BINARY
        and content[3] in _STRONG_HASHES
    )


class OpenPgp:
    """Checks signatures with the keys in the trust folder's gpg/, as of construction.

    UserErrors `BadTrustFolder`: a file has no key, or gpg is not installed.
    """

    def __init__(self, folder: Path) -> None:
        program = signature_programs.found("gpg")
        if program is None:
            raise UserError(
                f"{folder / GPG} has keys, but gpg is not installed; install GnuPG", "BadTrustFolder"
            )
        self._program = program
        self._home = Path(tempfile.mkdtemp(prefix="egs-gpg-"))
        self._gone = weakref.finalize(self, shutil.rmtree, self._home, ignore_errors=True)
        for file in gpg_files(folder):
            self._import(file)

    def close(self) -> None:
        self._gone()

    def fingerprint(self, message: bytes, armoured: str) -> str | None:
        """The primary key of a good signature of the message, if that key is valid now; else None."""
        packet = packet_of(armoured)
        if packet is None:
            return None
        file = self._home / "signature"
        file.write_bytes(packet)
        code, output = self._gpg(["--verify", "--", str(file), "-"], message)
        return _good(output) if code == 0 else None

    def _import(self, file: Path) -> None:
        try:
            code, _ = self._gpg(["--import"], file.read_bytes())
        except OSError as error:
            raise UserError(f"{file} cannot be read: {error.strerror}", "BadTrustFolder") from error
        if code != 0:
            raise UserError(
                f"{file} contains no OpenPGP key; write the output of `gpg --armor --export FINGERPRINT` into it",
                "BadTrustFolder",
            )

    def _gpg(self, args: Sequence[str], given: bytes) -> tuple[int, bytes]:
        if not self._home.is_dir():
            raise Fault(f"{self._home} is gone; restart the process", "VerifierFailed")
        command = [self._program, "--homedir", str(self._home), *_OPTIONS, *args]
        return signature_programs.answer(command, self._home, given)


def _good(output: bytes) -> str | None:
    said = [
        line.removeprefix(_STATUS).split(b" ") for line in output.splitlines() if line.startswith(_STATUS)
    ]
    verdicts = [words for words in said if words[0].endswith(b"SIG") and words[0] != b"NEWSIG"]
    # For an expired or revoked key gpg says VALIDSIG too, but not GOODSIG.
    if [words[0] for words in verdicts] != [b"GOODSIG", b"VALIDSIG"]:
        return None
    primary = verdicts[1][-1]
    return f"gpg:{primary.decode('ascii')}" if _FINGERPRINT.fullmatch(primary) else None
