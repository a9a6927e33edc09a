"""`egs whatif` on a repository: the check of a change that is not pushed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from egs.commands.backend import Where
from reconciler.changes.requests import assignments
from reconciler.cli.answers.check_pr import Opened, Refs, clock_of, opened
from reconciler.documents.yaml_edit import Field, with_field
from reconciler.model.evidence import Voucher
from reconciler.pulls.check_repository import PullToCheck
from reconciler.pulls.proposed_change import proposed_once
from reconciler.pulls.proposed_json import data
from reconciler.queries.state import split
from reconciler.sources.believed_keys import trust_folder
from reconciler.sources.command_errors import NotFound, WrongUse
from reconciler.sources.source import MAIN
from reconciler.sources.work_tree import person
from reconciler.store.git.remote_address import is_remote
from reconciler.trust.keyring import read_keyring
from schemas.reading.manifest_paths import path_of
from schemas.reading.strict_yaml import Refused
from schemas.rules.view import gpr_path

Edits = Sequence[tuple[str, Sequence[str]]]
"""Requests, each with `FIELD=VALUE` words."""


def what_if(where: Where, manifests: Mapping[str, str], edits: Edits, ended: Sequence[str]) -> dict[str, Any]:
    """The data of `egs whatif`; `manifests` are texts by the name of their file."""
    given = where.repo or os.environ.get("EGS_REPO")
    refs = Refs(head=MAIN) if given is not None and is_remote(given) else Refs()
    with opened(where.repo, refs) as found:
        changes = {_place(file, text): text.encode() for file, text in manifests.items()}
        for request, words in edits:
            fields = [(("spec", *field), value) for field, value in assignments(words)]
            changes |= _edited(found, changes, request, fields)
        for request in ended:
            changes |= _edited(found, changes, request, [(("spec", "earlyRelease"), True)])
        email = _author(where)
        vouchers = {"": (Voucher("signature", email=email),)} if email else {}
        asked = PullToCheck(
            found.base, "", found.status, vouchers, email, keyring=read_keyring(trust_folder())
        )
        return data(proposed_once(found.store, asked, changes, clock_of(where.now, found)))


def _place(file: str, text: str) -> str:
    try:
        path = path_of(text.encode())
    except Refused as error:
        raise WrongUse(f"{file}:{error.line}: {error}") from error
    if path is None:
        raise WrongUse(f"{file}: its kind and metadata.name make its path, for a GPR also spec.slice")
    return path


def _edited(
    found: Opened, changes: Mapping[str, bytes], request: str, fields: Sequence[tuple[Field, Any]]
) -> dict[str, bytes]:
    path = gpr_path(*split(request))
    content = changes.get(path) or found.store.read_path(found.base, path)
    if content is None:
        raise NotFound("request", request, ())
    try:
        for field, value in fields:
            content = with_field(content, field, value)
    except Refused as error:
        raise WrongUse(f"{path}:{error.line}: {error}; first repair the file") from error
    return {path: content}


def _author(where: Where) -> str | None:
    """As given, else as git is configured; None: it does not say."""
    try:
        return person(where.author, Path.cwd()).email
    except WrongUse:
        if where.author is not None:
            raise
        return None
