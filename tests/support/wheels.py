"""Wheels without a network: ours is built here, those that it needs are packed again from what is installed.

`pip install --no-index --find-links FOLDER` then fills an empty environment as an index would.
"""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

LEFT_OUT = frozenset({"INSTALLER", "REQUESTED", "RECORD", "direct_url.json"})
"""What the installer wrote beside the wheel's own files."""


def built(project: Path, into: Path) -> Path:
    """The wheel of a project folder."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--no-index", "--wheel-dir", str(into), str(project)], check=True)
    return next(into.glob("*.whl"))


def needed(wheel: Path) -> list[str]:
    """The distributions that a wheel needs, with all that those need."""
    with zipfile.ZipFile(wheel) as packed:
        about = next(name for name in packed.namelist() if name.endswith(".dist-info/METADATA"))
        lines = packed.read(about).decode().splitlines()
    asked = [line.removeprefix("Requires-Dist: ") for line in lines if line.startswith("Requires-Dist: ")]
    found: dict[str, None] = {}
    _collect(asked, found)
    return list(found)


def _collect(asked: list[str], found: dict[str, None]) -> None:
    for text in asked:
        requirement = Requirement(text)
        wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if wanted and requirement.name not in found:
            found[requirement.name] = None
            _collect(metadata.requires(requirement.name) or [], found)


def packed_again(name: str, into: Path) -> Path:
    """A wheel with the files of an installed distribution."""
    distribution = metadata.distribution(name)
    files = list(_files(distribution))
    info = next(inside.split("/")[0] for inside, _ in files if ".dist-info/" in inside)
    wheel = into / f"{info.removesuffix('.dist-info')}-{_tag(distribution)}.whl"
    with zipfile.ZipFile(wheel, "w") as packed:
        for inside, path in files:
            packed.write(path, inside)
        record = "".join(f"{inside},,\n" for inside, _ in files) + f"{info}/RECORD,,\n"
        packed.writestr(f"{info}/RECORD", record)
    return wheel


def _tag(distribution: metadata.Distribution) -> str:
    """For what it is good, in the short form of file names: `py2.py3-none-any`."""
    lines = (distribution.read_text("WHEEL") or "").splitlines()
    tags = [line.removeprefix("Tag: ").split("-") for line in lines if line.startswith("Tag: ")]
    return "-".join(".".join(dict.fromkeys(parts)) for parts in zip(*tags, strict=True))


def _files(distribution: metadata.Distribution) -> Iterator[tuple[str, Path]]:
    for file in distribution.files or ():
        inside = file.as_posix()
        if not inside.startswith("..") and file.name not in LEFT_OUT and not inside.endswith(".pyc"):
            yield inside, Path(str(file.locate()))


def empty_environment(folder: Path, wheel: Path) -> Path:
    """A fresh virtual environment with that wheel and what it needs; gives its folder of programs."""
    shelf = folder / "wheels"
    shelf.mkdir(parents=True)
    for name in needed(wheel):
        packed_again(name, shelf)
    venv.create(folder / "venv", with_pip=True)
    programs = folder / "venv" / "bin"
    command = [
        str(programs / "python"),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--find-links",
        str(shelf),
    ]
    subprocess.run([*command, str(wheel)], check=True)
    return programs
