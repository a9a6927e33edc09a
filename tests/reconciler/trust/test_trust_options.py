"""What the options of trust and forge make of a repository's address (E4)."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from agent.main import app as agent
from portal.main import app as portal
from reconciler.main import app as reconciler
from reconciler.settings import ForgeAddress, Trust
from reconciler.trust.trust_options import (
    ForgeOptions,
    TrustOptions,
    forge_from_environment,
    forge_of,
    known_forge,
)
from schemas.errors import UserError

GITHUB = ForgeAddress("github", "https://api.github.com", "acme/fleet")
SAID = ForgeOptions(forge="gitea")


@pytest.mark.parametrize(
    ("given", "remote", "want"),
    [
        pytest.param(ForgeOptions("github"), "https://github.com/acme/fleet.git", GITHUB, id="github.com"),
        pytest.param(ForgeOptions("github"), "git@github.com:acme/fleet.git", GITHUB, id="over ssh"),
        pytest.param(
            ForgeOptions("github"), "ssh://git@github.com/acme/fleet", GITHUB, id="over ssh, as a URL"
        ),
        pytest.param(ForgeOptions("github"), "https://x:y@github.com/acme/fleet/", GITHUB, id="with a login"),
        pytest.param(
            ForgeOptions(forge_token=Path("/t")),
            "https://github.com/acme/fleet.git",
            ForgeAddress("github", "https://api.github.com", "acme/fleet", Path("/t")),
            id="a token says that it is wanted",
        ),
        pytest.param(
            ForgeOptions(forge_token=Path("/t")),
            "https://gitlab.com/acme/gpu/fleet.git",
            ForgeAddress("gitlab", "https://gitlab.com/api/v4", "acme/gpu/fleet", Path("/t")),
            id="gitlab.com, in a group of a group",
        ),
        pytest.param(
            ForgeOptions("github"),
            "https://ghe.example.com/acme/fleet.git",
            ForgeAddress("github", "https://ghe.example.com/api/v3", "acme/fleet"),
            id="GitHub on one's own host",
        ),
        pytest.param(
            ForgeOptions("github"),
            "https://acme.ghe.com/acme/fleet.git",
            ForgeAddress("github", "https://api.acme.ghe.com", "acme/fleet"),
            id="GitHub with data residency",
        ),
        pytest.param(
            SAID,
            "ssh://git@forge.example.com:2222/acme/fleet.git",
            ForgeAddress("gitea", "https://forge.example.com/api/v1", "acme/fleet"),
            id="a port of ssh says nothing of the web's",
        ),
        pytest.param(
            SAID,
            "https://forge.example.com:3000/acme/fleet.git",
            ForgeAddress("gitea", "https://forge.example.com:3000/api/v1", "acme/fleet"),
            id="a port of the web's own",
        ),
        pytest.param(
            SAID,
            "http://127.0.0.1:3000/acme/fleet.git",
            ForgeAddress("gitea", "http://127.0.0.1:3000/api/v1", "acme/fleet"),
            id="without TLS, as the repository",
        ),
        pytest.param(
            ForgeOptions("gitea", "https://forge.example.com/sub/api/v1/", "acme/fleet"),
            "/srv/fleet.git",
            ForgeAddress("gitea", "https://forge.example.com/sub/api/v1", "acme/fleet"),
            id="a folder, and everything said",
        ),
        pytest.param(
            ForgeOptions(), "https://github.com/acme/fleet.git", None, id="nothing said, none wanted"
        ),
        pytest.param(ForgeOptions(), "/srv/fleet.git", None, id="nothing said of a folder"),
    ],
)
def test_which_forge(given, remote, want):
    assert forge_of(given, remote) == want


@pytest.mark.parametrize("level", ["forge", "both"])
def test_a_level_that_asks_the_forge_needs_one(level):
    assert forge_of(ForgeOptions(), "git@github.com:acme/fleet.git", level) == GITHUB
    with pytest.raises(UserError, match="give --forge github"):
        forge_of(ForgeOptions(), "https://forge.example.com/acme/fleet.git", level)


@pytest.mark.parametrize(
    ("given", "remote", "says"),
    [
        pytest.param(
            ForgeOptions(forge_token=Path("t")), "https://example.com/a/b", "--forge github", id="kind"
        ),
        pytest.param(SAID, "https://example.com/", "--forge-repository", id="repository"),
        pytest.param(SAID, "/srv/fleet.git", "--forge-repository", id="a folder"),
        pytest.param(ForgeOptions("gitea", "", "a/b"), "/srv/fleet.git", "--forge-api", id="api"),
        pytest.param(
            ForgeOptions("gitea", "https://me:pw@x.com", "a/b"), "/f", "without a login", id="a login"
        ),
        pytest.param(ForgeOptions("gitea", "ftp://x.com", "a/b"), "/f", "--forge-api", id="no web address"),
        pytest.param(
            ForgeOptions("gitea", "", "a b"), "https://x.com/a/b", "--forge-repository", id="a blank"
        ),
    ],
)
def test_what_more_has_to_be_said(given, remote, says):
    with pytest.raises(UserError, match=says) as caught:
        forge_of(given, remote)
    assert caught.value.reason == "WrongUse"
    assert "pw" not in str(caught.value)


def test_who_can_do_without_a_forge_takes_the_one_that_is_known():
    assert known_forge(ForgeOptions(), "git@github.com:acme/fleet.git") == GITHUB
    assert known_forge(ForgeOptions(), "https://forge.example.com/acme/fleet.git") is None
    assert known_forge(ForgeOptions(), "/srv/fleet.git") is None
    with pytest.raises(UserError):
        known_forge(SAID, "/srv/fleet.git")


def test_the_variables_say_the_same_as_the_options():
    environment = {
        "EGS_FORGE": "gitea",
        "EGS_FORGE_API": "https://x.com/api/v1",
        "EGS_FORGE_REPOSITORY": "a/b",
        "EGS_FORGE_TOKEN_FILE": "/run/token",
    }
    want = ForgeOptions("gitea", "https://x.com/api/v1", "a/b", Path("/run/token"))
    assert forge_from_environment(environment) == want
    assert forge_from_environment({}) == ForgeOptions()
    with pytest.raises(UserError, match="EGS_FORGE is 'sourcehut'"):
        forge_from_environment({"EGS_FORGE": "sourcehut"})


def test_paths_are_made_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = TrustOptions("signature", Path("trust"), Path("~/key")).settings(
        "https://forge.example.com/fleet.git"
    )
    assert found == Trust("signature", tmp_path / "trust", Path("~/key").expanduser())


@pytest.mark.parametrize(
    "repo", ["https://forge.example.com/fleet.git", "git@forge.example.com:team/fleet.git"]
)
def test_a_remote_repository_wants_the_level_said(repo, caplog):
    with pytest.raises(
        UserError, match="--verify none: then everyone who can push counts as an admin"
    ) as refused:
        TrustOptions().settings(repo)
    assert refused.value.reason == "WrongUse"
    assert TrustOptions("none").settings(repo).level == "none"
    assert "main is not verified" in caplog.text


def test_a_folder_is_its_owners_and_needs_no_level(tmp_path, caplog):
    assert TrustOptions().settings(str(tmp_path)).level == "none"
    assert not caplog.text


TRUST, FORGE = (
    ("--verify", "--trust", "--key"),
    ("--forge", "--forge-api", "--forge-repository", "--forge-token"),
)


@pytest.mark.parametrize(
    ("app", "command", "has"),
    [
        (reconciler, "run", TRUST + FORGE),
        (reconciler, "once", TRUST + FORGE),
        (reconciler, "adopt", TRUST + FORGE),
        (reconciler, "apply", TRUST),
        (reconciler, "door", TRUST),
        (agent, "run", ("--key",)),
        (agent, "once", ("--key",)),
    ],
)
def test_every_process_has_the_options_that_it_needs(app, command, has):
    options = [name for each in get_command(app).commands[command].params for name in each.opts]
    assert [name for name in options if name in TRUST + FORGE] == list(has)


@pytest.mark.parametrize("command", ["run", "once", "adopt"])
def test_an_option_that_is_wrong_is_told_before_anything_is_done(command, tmp_path):
    state = ["--repo", str(tmp_path / "fleet.git"), "--state", str(tmp_path / "state")]
    done = CliRunner().invoke(reconciler, [command, *state, "--verify", "forge"])
    assert isinstance(done.exception, UserError)
    assert "--forge" in str(done.exception)
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(
    ("app", "given"),
    [
        pytest.param(reconciler, ["run"], id="a controller"),
        pytest.param(reconciler, ["once"], id="one cycle"),
        pytest.param(reconciler, ["adopt"], id="taking over"),
        pytest.param(reconciler, ["apply", "--cluster", "east"], id="an applier"),
        pytest.param(portal, [], id="a portal"),
    ],
)
def test_no_process_takes_a_remote_without_its_level(app, given, tmp_path):
    where = ["--repo", "https://127.0.0.1:9/fleet.git", "--state", str(tmp_path / "state")]
    done = CliRunner().invoke(app, [*given, *where])
    assert isinstance(done.exception, UserError)
    assert "it is not configured whose changes on main count" in str(done.exception)
    assert not (tmp_path / "state").exists()


def test_one_name_on_a_forge_is_not_for_several_repositories():
    done = CliRunner().invoke(
        reconciler,
        ["run", "--repo", "a=/a", "--repo", "b=/b", "--forge-repository", "a/b", "--forge", "gitea"],
    )
    assert "--forge-repository are for a single repository" in str(done.exception)
