"""Git over https and ssh with credentials from files, against real servers that ask for them."""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reconciler.credentials import Credentials, from_environment
from reconciler.store.git.git_store import GitStore
from reconciler.store.git.open_remote import opening
from reconciler.store.git.remote_address import parse
from reconciler.store.git.unreadable_remote import NOT_STARTED, unreachable
from reconciler.store.store_port import Outcome
from schemas.errors import Fault, UserError
from tests.reconciler.store.conftest import push_one
from tests.support import repos, servers
from tests.support.servers import Authority, Sshd

SECRET = "s3cr3t-t0ken with a blank"
LOGIN = f"bot:{SECRET}"

needs_sshd = pytest.mark.skipif(servers.SSHD is None, reason="sshd is not installed (openssh-server)")

Opened = Callable[..., GitStore]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return servers.authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    if servers.SSHD is None:
        pytest.skip("sshd is not installed (openssh-server)")
    with servers.sshd(tmp_path_factory.mktemp("sshd")) as running:
        yield running


@pytest.fixture
def open_with(tmp_path: Path) -> Iterator[Opened]:
    """Opens stores on a URL with credentials, each with a mirror of its own."""
    stores: list[GitStore] = []

    def opened(url: str, credentials: Credentials) -> GitStore:
        stores.append(GitStore(url, tmp_path / f"mirror-{len(stores)}", credentials=credentials))
        return stores[-1]

    yield opened
    for store in stores:
        store.close()


def secret_folder(path: Path, **files: str | Path) -> Path:
    """A folder as Kubernetes mounts a Secret: each file a link into `..data`, which is a link to the version."""
    version = path / "..version-1"
    version.mkdir(parents=True)
    (path / "..data").symlink_to(version.name)
    names = {"ca": "ca.crt", "ssh_key": "ssh-privatekey"}
    for key, content in files.items():
        name = names.get(key, key)
        (version / name).write_text(content.read_text() if isinstance(content, Path) else content)
        (version / name).chmod(0o400)
        (path / name).symlink_to(f"..data/{name}")
    return path


def rotate(path: Path, name: str, content: str) -> None:
    """A new version of the Secret, as Kubernetes puts it in place: in one rename."""
    old = path / (path / "..data").readlink()
    new = path / "..version-2"
    new.mkdir()
    for file in old.iterdir():
        (new / file.name).write_text(content if file.name == name else file.read_text())
    (path / "..next").symlink_to(new.name)
    (path / "..next").replace(path / "..data")


# -- https -----------------------------------------------------------------------------------------------------


def test_a_mounted_secret_opens_a_remote_over_https_for_reading_and_writing(
    remote, authority, tmp_path, open_with
):
    files = secret_folder(tmp_path / "s", username="bot\n", password=SECRET + "\n", ca=authority.ca)
    with repos.serve(remote.parent, LOGIN, authority.tls) as url:
        assert push_one(open_with(f"{url}/remote.git", Credentials(files))) == repos.tip(remote)


def test_single_files_count_more_than_the_folder(remote, authority, tmp_path, open_with):
    files = secret_folder(tmp_path / "s", username="bot", password="not this one", ca=authority.ca)
    (tmp_path / "token").write_text(SECRET)
    with repos.serve(remote.parent, LOGIN, authority.tls) as url:
        store = open_with(f"{url}/remote.git", Credentials(files, password=tmp_path / "token"))
        assert store.fetch(["main"]) == {"main": repos.tip(remote)}


@pytest.mark.parametrize(
    ("in_url", "wanted"), [("bo@", "bo"), ("", "git")], ids=["as in the URL", "git, where nobody says"]
)
def test_a_token_without_a_username_file_goes_with_a_name(
    in_url, wanted, remote, authority, tmp_path, open_with
):
    files = secret_folder(tmp_path / "s", password=SECRET, ca=authority.ca)
    with repos.serve(remote.parent, f"{wanted}:{SECRET}", authority.tls) as url:
        store = open_with(url.replace("://", f"://{in_url}") + "/remote.git", Credentials(files))
        assert store.fetch(["main"]) == {"main": repos.tip(remote)}


def test_a_rotated_token_counts_from_the_next_call_on(remote, authority, tmp_path, open_with):
    files = secret_folder(tmp_path / "s", username="bot", password="the old one", ca=authority.ca)
    with repos.serve(remote.parent, LOGIN, authority.tls) as url:
        store = open_with(f"{url}/remote.git", Credentials(files))
        with pytest.raises(Fault):
            store.fetch(["main"])
        rotate(files, "password", SECRET)
        push_one(store)
        (files / "password").unlink()
        (files / "password").mkdir()
        with pytest.raises(Fault) as caught:
            store.fetch(["main"])
    assert caught.value.reason == "LoginRefused"


def test_a_token_is_in_no_process_no_file_no_log_and_no_error(remote, authority, tmp_path, open_with, caplog):
    caplog.set_level(logging.DEBUG)
    files = secret_folder(tmp_path / "s", username="bot", password=SECRET, ca=authority.ca)
    forms = (SECRET.encode(), base64.b64encode(LOGIN.encode()))
    leaks, headers, allowed = [], [], [True]

    def met(header: str | None) -> int:
        """Looks at every process of this machine, while git waits for the answer."""
        headers.append(header)
        for about in (*Path("/proc").glob("[0-9]*/cmdline"), *Path("/proc").glob("[0-9]*/environ")):
            try:
                content = about.read_bytes()
            except OSError:
                continue
            leaks.extend(str(about) for form in forms if form in content)
        if header is None:
            return 401
        return 200 if allowed else 403

    with repos.serve(remote.parent, tls=authority.tls, met=met) as url:
        store = open_with(f"{url}/remote.git", Credentials(files))
        push_one(store)
        allowed.clear()
        with pytest.raises(Fault) as caught:
            store.fetch(["main"])
    assert repos.basic(LOGIN) in headers
    assert leaks == []
    mirror = [path.read_bytes() for path in tmp_path.glob("mirror-*/**/*") if path.is_file()]
    said = (
        str(caught.value)
        + caplog.text
        + repr(opening(parse(url), Credentials(files)))
        + repr(Credentials(files))
    )
    assert not any(form in content for form in forms for content in (*mirror, said.encode()))
    assert caught.value.reason == "LoginRefused"
    assert "denied access" in str(caught.value)


@pytest.mark.parametrize(
    ("files", "reason", "words"),
    [
        pytest.param({"username": "bot", "password": "wrong-t0ken"}, "LoginRefused", "refused", id="a wrong token"),
        pytest.param({}, "LoginRefused", "requires a login", id="no token at all"),
    ],
)  # fmt: skip
def test_a_refused_login_says_so(files, reason, words, remote, authority, tmp_path, open_with):
    folder = secret_folder(tmp_path / "s", ca=authority.ca, **files)
    with repos.serve(remote.parent, LOGIN, authority.tls) as url:
        store = open_with(f"{url}/remote.git", Credentials(folder))
        with pytest.raises(Fault, match=words) as caught:
            store.fetch(["main"])
        assert store.push("main", repos.tip(remote), repos.tip(remote)) is Outcome.UNKNOWN
    assert caught.value.reason == reason
    assert "wrong-t0ken" not in str(caught.value)


def test_a_server_that_nobody_vouches_for_is_told_nothing(remote, authority, tmp_path, open_with):
    other = servers.authority(tmp_path / "other")
    met: list[str | None] = []
    files = secret_folder(tmp_path / "s", password=SECRET, ca=other.ca)
    with (
        repos.serve(remote.parent, tls=authority.tls, met=lambda header: met.append(header) or 200) as url,
        pytest.raises(Fault) as caught,
    ):
        open_with(f"{url}/remote.git", Credentials(files)).fetch(["main"])
    assert (caught.value.reason, met) == ("CertificateRefused", [])


def test_a_redirect_leads_no_token_away(remote, authority, tmp_path, open_with):
    """The server sends git to another one: it does not go there."""
    met: list[str | None] = []
    files = secret_folder(tmp_path / "s", username="bot", password=SECRET, ca=authority.ca)
    with (
        repos.serve(remote.parent, tls=authority.tls, met=lambda header: met.append(header) or 401) as other,
        repos.serve(remote.parent, LOGIN, authority.tls, location=other) as url,
        pytest.raises(Fault),
    ):
        open_with(f"{url}/remote.git", Credentials(files)).fetch(["main"])
    assert met == []


# -- ssh -------------------------------------------------------------------------------------------------------


def test_a_key_opens_a_remote_over_ssh_for_reading_and_writing(remote, sshd, tmp_path, open_with):
    files = secret_folder(tmp_path / "with a blank, 100%h", ssh_key=sshd.key, known_hosts=sshd.known_hosts)
    store = open_with(f"{sshd.url}{remote}", Credentials(files))
    assert push_one(store) == repos.tip(remote)


@needs_sshd
def test_keys_of_the_caller_and_its_configuration_are_not_used(
    remote, sshd, tmp_path, open_with, monkeypatch
):
    """Only the file that was named opens anything: no agent, no ~/.ssh, no variable of the caller's."""
    monkeypatch.setenv("GIT_SSH_COMMAND", f"ssh -i {sshd.key} -o StrictHostKeyChecking=no")
    stranger = servers.new_key(tmp_path / "stranger")
    store = open_with(f"{sshd.url}{remote}", Credentials(ssh_key=stranger, known_hosts=sshd.known_hosts))
    with pytest.raises(Fault, match="refused the key") as caught:
        store.fetch(["main"])
    assert caught.value.reason == "LoginRefused"


def test_a_key_that_is_rotated_counts_from_the_next_call_on(remote, sshd, tmp_path, open_with):
    key = servers.new_key(tmp_path / "key")
    store = open_with(f"{sshd.url}{remote}", Credentials(ssh_key=key, known_hosts=sshd.known_hosts))
    with pytest.raises(Fault):
        store.fetch(["main"])
    key.write_bytes(sshd.key.read_bytes())
    key.with_suffix(".pub").unlink()  # ssh would go by it, and Secrets have none
    push_one(store)
    key.unlink()
    with pytest.raises(Fault, match="cannot be read") as caught:
        store.fetch(["main"])
    assert caught.value.reason == "BadCredentials"
    assert store.push("main", repos.tip(remote), repos.tip(remote)) is Outcome.UNKNOWN


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ("[127.0.0.1]:{port} {other}", "differs from"),
        ("elsewhere {right}", "not the one in"),
        ("", "not the one in"),
    ],
    ids=["a host key of somebody else", "the key of another host", "an empty file"],
)
def test_a_server_whose_key_is_not_known_is_not_spoken_to(known, words, remote, sshd, tmp_path, open_with):
    right = sshd.known_hosts.read_text().split(" ", 1)[1]
    other = servers.new_key(tmp_path / "other").with_suffix(".pub").read_text()
    hosts = tmp_path / "known_hosts"
    hosts.write_text(known.format(port=sshd.port, other=other, right=right))
    store = open_with(f"{sshd.url}{remote}", Credentials(ssh_key=sshd.key, known_hosts=hosts))
    before = hosts.read_text()
    with pytest.raises(Fault, match=words) as caught:
        store.fetch(["main"])
    assert caught.value.reason == "HostKeyRefused"
    assert "known_hosts" in str(caught.value)
    assert hosts.read_text() == before, "no server writes itself into the file"


# -- what is wrong before anybody is asked ---------------------------------------------------------------------

SSH, HTTPS = "ssh://git@host/x.git", "https://host/x.git"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\n"
KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\n"


@pytest.mark.parametrize(
    ("remote", "files", "words"),
    [
        pytest.param("git@host:x.git", {}, "ssh needs a private key", id="ssh without a key"),
        pytest.param(SSH, {"ssh-privatekey": KEY}, "ssh-keyscan HOST", id="ssh without known_hosts"),
        pytest.param(SSH, {"ssh-privatekey": "ssh-rsa A", "known_hosts": ""}, "no private key", id="the public half"),
        pytest.param(HTTPS, {"password": "one\ntwo"}, "one line", id="a password of two lines"),
        pytest.param(HTTPS, {"password": "one\r\n"}, "one line", id="a password with a carriage return"),
        pytest.param(HTTPS, {"password": "\n"}, "one line", id="an empty password"),
        pytest.param(HTTPS, {"ca.crt": "x"}, "no certificate", id="a CA file that is none"),
        pytest.param("http://host/x.git", {"password": "hunter22"}, "https:// only", id="a password over http"),
        pytest.param("https://bo:pw@host/x.git", {"password": "hunter22"}, "remove the one in", id="two passwords"),
        pytest.param("https://b%0Ao@host/x.git", {"password": "hunter22"}, "control", id="a name of two lines"),
    ],
)  # fmt: skip
def test_bad_credentials_are_told_before_anybody_is_asked(remote, files, words, tmp_path):
    folder = tmp_path / "s"
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_text(content)
        (folder / name).chmod(0o600)
    with pytest.raises(UserError, match=words) as caught:
        GitStore(remote, tmp_path / "mirror", credentials=Credentials(folder))
    assert caught.value.reason == "BadCredentials"
    assert "hunter22" not in str(caught.value)
    assert not (tmp_path / "mirror").exists()


def test_a_key_that_others_may_read_is_refused(tmp_path):
    key = tmp_path / "key"
    key.write_text(KEY)
    key.chmod(0o644)
    (tmp_path / "known_hosts").write_text("x")
    with pytest.raises(UserError, match="defaultMode: 0400"):
        opening(parse(SSH), Credentials(tmp_path, ssh_key=key))


def test_a_folder_or_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UserError, match="is not a folder"):
        opening(parse(HTTPS), Credentials(tmp_path / "none"))
    with pytest.raises(UserError, match="none cannot be read: No such file"):
        opening(parse(HTTPS), Credentials(password=tmp_path / "none"))


def test_a_folder_of_this_machine_needs_none_of_it(tmp_path):
    assert opening(parse(str(tmp_path)), Credentials(tmp_path / "none")).arguments == ()


def test_a_login_in_the_url_reaches_only_the_git_that_talks_to_the_remote(tmp_path):
    address = parse("https://bo:hunter22@host/x.git")
    opened = opening(address, Credentials())
    assert dict(opened.variables)["GIT_CONFIG_VALUE_0"] == address.header
    assert not any("hunter22" in word for word in opened.arguments)


def test_the_environment_names_folder_and_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = from_environment(
        {"EGS_GIT_CREDENTIALS": "s", "EGS_GIT_PASSWORD_FILE": "/run/token", "EGS_GIT_CA_FILE": ""}
    )
    assert found == Credentials(tmp_path / "s", password=Path("/run/token"))


def test_what_git_says_otherwise_is_told_as_it_is():
    assert unreachable(128, "fatal: odd").reason == "RemoteUnreachable"
    assert unreachable(NOT_STARTED, "no such file").reason == "BadCredentials"
