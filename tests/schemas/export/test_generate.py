"""The committed JSON Schemas are those of the models, and serve editors."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from schemas.export import generate
from schemas.reading.reader import REGULAR, read_document
from schemas.rules.check import check_files

ROOT = Path(__file__).parents[3]
SCHEMAS = {name: json.loads(text) for name, text in generate.schema_texts().items()}
EXAMPLE = ROOT / "examples" / "repo"
FILES = sorted(path for path in EXAMPLE.rglob("*") if path.is_file())


def test_the_committed_schemas_are_fresh() -> None:
    assert generate.FILES.stale() == [], "run: make schemas"


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_explains_every_field(name: str) -> None:
    schema = SCHEMAS[name]
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    for part in (schema, *schema.get("$defs", {}).values()):
        if part.get("type") == "object":
            assert part["additionalProperties"] is False
        for field, about in part.get("properties", {}).items():
            assert about.get("description"), field
            assert about.get("title"), field


@pytest.mark.parametrize("kind", [model.__name__ for model in generate.USER_KINDS])
def test_the_example_of_a_schema_is_valid(kind: str) -> None:
    schema = SCHEMAS[f"{kind.lower()}.schema.json"]
    for example in schema["examples"]:
        Draft202012Validator(schema).validate(example)


@pytest.mark.parametrize("name", SCHEMAS)
def test_defaults_are_written_as_files_have_them(name: str) -> None:
    def wrong(schema: Any) -> list[Any]:
        if isinstance(schema, list):
            return [bad for entry in schema for bad in wrong(entry)]
        if not isinstance(schema, dict):
            return []
        below = [bad for entry in schema.values() for bad in wrong(entry)]
        default = schema.get("default")
        unfit = isinstance(default, str) and not Draft202012Validator(schema).is_valid(default)
        return [*below, schema] if unfit else below

    assert wrong(SCHEMAS[name]) == []


def test_stale_missing_and_foreign_files_are_noticed_and_mended(tmp_path: Path) -> None:
    files = replace(generate.FILES, folder=tmp_path)
    files.write()
    assert files.stale() == []
    (tmp_path / "gpr.schema.json").write_text("{}")
    (tmp_path / "slice.schema.json").unlink()
    (tmp_path / "old.schema.json").write_text("{}")
    assert files.stale() == ["gpr.schema.json", "old.schema.json", "slice.schema.json"]
    files.write()
    assert files.stale() == []


def test_wrong_use_exits_2() -> None:
    assert generate.FILES.command(["--chekc"]) == 2
    assert generate.FILES.command(["--check"]) == 0


def test_the_example_repository_draws_no_word_at_all() -> None:
    result = check_files((path.relative_to(EXAMPLE).as_posix(), REGULAR, path.read_bytes()) for path in FILES)
    assert result.problems == ()
    assert result.documents == len(FILES) - 1  # all but the README


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.suffix == ".yaml"], ids=lambda path: path.stem
)
def test_an_example_names_its_schema_for_editors(path: Path) -> None:
    first = path.read_text("utf-8").splitlines()[0]
    prefix = "# yaml-language-server: $schema="
    assert first.startswith(prefix)
    document = read_document(path.relative_to(EXAMPLE).as_posix(), path.read_bytes())
    schema = (path.parent / first.removeprefix(prefix)).resolve()
    assert schema == generate.FOLDER / f"{type(document).__name__.lower()}.schema.json"
    assert schema.exists()
