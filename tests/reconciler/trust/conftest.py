"""Keys that the tests of trust share: making them costs more than using them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import realkeys as keys


@pytest.fixture(scope="session")
def key_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keys")


@pytest.fixture(scope="session")
def ada_key(key_folder: Path) -> keys.Key:
    return keys.ssh_key(key_folder, "ada")


@pytest.fixture(scope="session")
def bo_key(key_folder: Path) -> keys.Key:
    return keys.ssh_key(key_folder, "bo")


@pytest.fixture(scope="session")
def rsa_key(key_folder: Path) -> keys.Key:
    return keys.ssh_key(key_folder, "rsa", "rsa", 2048)


@pytest.fixture(scope="session")
def openpgp() -> Iterator[keys.OpenPgpKey]:
    if keys.GPG is None:
        pytest.skip("gpg is not installed (gnupg)")
    with tempfile.TemporaryDirectory(prefix="gpg-") as folder, keys.openpgp_key(Path(folder) / "ada") as key:
        yield key
