"""Values are read strictly and explained; the chart's files are those of the models. A10."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from reconciler.cli.answers.installation import image_of
from reconciler.deploying import generate
from reconciler.deploying.install_values import Values, read
from schemas.errors import UserError
from tests.deploy.cases import BELIEVING, CASES, MISSPELT, REFUSED, Json
from tests.deploy.helm import CHART, ROOT


def test_the_committed_files_of_the_chart_are_fresh() -> None:
    assert generate.FILES.stale() == [], "run: make schemas"


def test_a_stale_file_is_named_and_written_anew(tmp_path: Path) -> None:
    files = replace(generate.FILES, folder=tmp_path)
    files.write()
    assert files.stale() == []
    (tmp_path / "files" / "rights.yaml").write_text("driver: []\n")
    assert files.stale() == ["files/rights.yaml"]


def test_the_chart_has_the_custom_resources_of_deploy_crds() -> None:
    def texts(folder: Path) -> dict[str, str]:
        return {path.name: path.read_text() for path in folder.glob("*.yaml")}

    assert texts(CHART / "files" / "crds") == texts(ROOT / "deploy" / "crds")


def test_the_chart_s_defaults_are_the_model_s_and_none_is_left_out() -> None:
    given = yaml.safe_load((CHART / "values.yaml").read_text())
    assert {**Values().model_dump(by_alias=True, mode="json"), "repositories": []} == {**given, "global": {}}


def test_the_chart_s_version_is_that_of_the_program() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    version = next(
        line for line in (ROOT / "pyproject.toml").read_text().splitlines() if line.startswith("version")
    )
    assert version == f'version = "{chart["appVersion"]}"'


@pytest.mark.parametrize("given", CASES.values(), ids=CASES.keys())
def test_values_that_make_sense_are_read(given: Json) -> None:
    assert read(given).repositories


@pytest.mark.parametrize(("given", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_work_is_refused_in_a_sentence(given: Json, words: str) -> None:
    with pytest.raises(UserError, match=words):
        read(given)


@pytest.mark.parametrize("given", MISSPELT.values(), ids=MISSPELT.keys())
def test_what_is_misspelt_is_refused(given: Json) -> None:
    with pytest.raises(UserError) as refused:
        read(given)
    assert refused.value.reason == "ValuesInvalid"


@pytest.mark.parametrize(
    ("address", "plain"),
    [
        ("git@forge.example.com:team/fleet.git", "git@forge.example.com:team/fleet.git"),
        ("fleet=git@forge.example.com:team/fleet.git", "git@forge.example.com:team/fleet.git"),
        ("https://forge.example.com/a=b.git", "https://forge.example.com/a=b.git"),
        ("fleet=https://forge.example.com/a=b.git", "https://forge.example.com/a=b.git"),
    ],
)
def test_parts_that_know_one_repository_get_its_bare_address(address: str, plain: str) -> None:
    assert read({"repositories": [address], **BELIEVING}).repository == plain


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("egs", ("egs", "", "")),
        ("example.com/egs:1.2", ("example.com/egs", "1.2", "")),
        ("example.com:5000/egs", ("example.com:5000/egs", "", "")),
        ("example.com:5000/egs:1.2@sha256:0", ("example.com:5000/egs", "1.2", "sha256:0")),
    ],
)
def test_an_image_is_taken_apart_as_everywhere(text: str, parts: tuple[str, str, str]) -> None:
    assert tuple(image_of(text).values()) == parts
