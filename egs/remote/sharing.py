"""`egs slice …` and `egs kubeconfig` on a server."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from egs.remote import asking, output
from egs.remote.errors import not_allowed, wrong_use
from egs.remote.output import Form, Output
from egs.remote.requesting import report

Name = Annotated[str, typer.Argument(metavar="SLICE", help="Its name.", show_default=False)]
Mail = Annotated[str, typer.Argument(metavar="MAIL", help="The person's address.", show_default=False)]
Clusters = Annotated[
    list[str] | None,
    typer.Option(
        "--cluster",
        metavar="C",
        help="Cluster; may be repeated, in order of preference. Default: the only one.",
        show_default=False,
    ),
]
Namespaces = Annotated[
    list[str] | None,
    typer.Option(
        "--namespace", metavar="N", help="Namespace; may be repeated. Default: its name.", show_default=False
    ),
]
Members = Annotated[
    list[str] | None,
    typer.Option(
        "--member", metavar="MAIL", help="Who is to work there; may be repeated.", show_default=False
    ),
]
Gpus = Annotated[
    int | None,
    typer.Option(
        "--quota", min=0, metavar="GPUS", help="GPUs of one request without approval.", show_default=False
    ),
]


def register(app: typer.Typer) -> None:
    """Add them to the app."""
    group = typer.Typer(
        help="Ask for a slice, make one, and say who works there.\n\n\b\nExample:\n"
        '  egs slice request nlp --quota 16 --reason "translation"',
        short_help="Ask for, make and change slices.",
        no_args_is_help=True,
    )
    group.command("request", short_help="Ask for a slice; an admin's merge makes it.")(request)
    group.command("create", short_help="Make a slice (admins).")(create)
    group.command("delete", short_help="Take a slice away (admins).")(delete)
    members = typer.Typer(
        help="Say who works in a slice.\n\n\b\nExample:\n  egs slice members add nlp dee@example.com",
        short_help="Say who works there.",
        no_args_is_help=True,
    )
    members.command("add", short_help="Add somebody, or their keys.")(add)
    members.command("remove", short_help="Take somebody out.")(remove)
    group.add_typer(members, name="members")
    app.add_typer(group, name="slice")
    app.command("kubeconfig", short_help="Get a kubeconfig of a slice.")(kubeconfig)


def request(  # noqa: PLR0913 - each is an option of the command
    name: Name,
    email: Annotated[
        str | None, typer.Option(metavar="MAIL", help="Who will own it. Default: you.", show_default=False)
    ] = None,
    cluster: Clusters = None,
    namespace: Namespaces = None,
    member: Members = None,
    quota: Gpus = None,
    reason: Annotated[
        str, typer.Option(metavar="TEXT", help="What it is for; admins read it.", show_default=False)
    ] = "",
) -> None:
    """Ask for a slice of your own. An admin's merge makes it, and you own it.

    \b
    Examples:
      egs slice request nlp --quota 16 --reason "translation models"
      egs slice request nlp --cluster east --cluster west --namespace nlp-train --member dee@example.com

    `egs get requests` shows what became of it. An admin's request is made at once.
    """
    _made(name, (cluster, namespace, member), {"email": email, "quotaGPUs": quota, "description": reason})


def create(  # noqa: PLR0913 - each is an option of the command
    name: Name,
    cluster: Clusters = None,
    namespace: Namespaces = None,
    member: Members = None,
    owner: Annotated[
        list[str] | None,
        typer.Option(metavar="MAIL", help="Who may change its members; may be repeated.", show_default=False),
    ] = None,
    quota: Gpus = None,
    description: Annotated[str, typer.Option(metavar="TEXT", help="For people.", show_default=False)] = "",
) -> None:
    """Make a slice: its own file, which also takes the place of a request for it. For admins.

    \b
    Example:
      egs slice create vision --member bo@example.com --owner ida@example.com --quota 32
    """
    if not asking.get("auth")["isAdmin"]:
        raise not_allowed("only an admin makes a slice; `egs slice request` asks for one", "Forbidden")
    owners = owner or []
    if len(owners) > 1:
        raise wrong_use(
            "over the server a slice is made with one owner; `egs slice edit` on a repository adds more"
        )
    more = {"email": owners[0] if owners else None, "quotaGPUs": quota, "description": description}
    _made(name, (cluster, namespace, member), more)


def _made(
    name: str,
    lists: tuple[Sequence[str] | None, Sequence[str] | None, Sequence[str] | None],
    more: Mapping[str, Any],
) -> None:
    clusters, namespaces, members = (list(one or ()) for one in lists)
    body = {"workspaceName": name, "clusters": clusters or _only_cluster(), "namespaces": namespaces}
    done = asking.send("POST", "slice-workspace", {**body, "members": members, **more})
    report(f"Slice {name}", done["change"])


def _only_cluster() -> list[str]:
    names = [row["name"] for row in asking.pages("tables/clusters")]
    if len(names) != 1:
        raise wrong_use(f"say which clusters it spans with --cluster; you see {', '.join(names) or 'none'}")
    return names


def delete(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without it you are told what would go.")] = False,
    output: Output = Form.TABLE,
) -> None:
    """Take a slice away, with its files. Refused while a request of it waits or holds nodes.

    \b
    Example:
      egs slice delete vision --yes

    Namespaces that were made for it go with all that is in them, unless they bear egs.dev/keep.
    """
    found = asking.get("slice-workspace", {"workspaceName": name})
    names = [one["namespace"] for one in found["namespaces"]]
    content = {"slice": name, "clusters": found["clusters"], "namespaces": names}
    if output is not Form.TABLE:
        _data(content, output)
    if not yes:
        _note(f"{name} would go, and in {', '.join(found['clusters'])}: {', '.join(names)}; --yes does it")
        return
    report(
        f"Delete slice {name}", asking.send("DELETE", "slice-workspace", {"workspaceName": name})["change"]
    )


def add(
    name: Name,
    mail: Mail,
    owner: Annotated[bool, typer.Option("--owner", help="Also as an owner (admins).")] = False,
) -> None:
    """Add somebody to a slice.

    \b
    Example:
      egs slice members add vision dee@example.com

    Keys that people sign with are added on a repository.
    """
    found = asking.get("slice-workspace", {"workspaceName": name})
    people = {"members": with_one(found["members"], mail)}
    people |= {"owners": with_one(found["owners"], mail)} if owner else {}
    if all(people[field] == found[field] for field in people):
        raise not_allowed(f"{mail} is there already; nothing to change")
    _edited(name, people, f"Add {mail} to slice {name}")


def remove(name: Name, mail: Mail) -> None:
    """Take somebody out of a slice. Their rights in its namespaces end, and the kubeconfigs they have.

    \b
    Example:
      egs slice members remove vision dee@example.com
    """
    found = asking.get("slice-workspace", {"workspaceName": name})
    people = {
        field: [one for one in found[field] if one.lower() != mail.lower()] for field in ("members", "owners")
    }
    changed = {field: rest for field, rest in people.items() if rest != found[field]}
    if not changed:
        raise not_allowed(f"{mail} is no member of slice {name}; nothing is changed", "NotFound")
    _edited(name, changed, f"Remove {mail} from slice {name}")


def with_one(people: Sequence[str], mail: str) -> list[str]:
    """The addresses with that one, once, in capitals or not."""
    return [*people, *([] if mail.lower() in {one.lower() for one in people} else [mail])]


def _edited(name: str, fields: Mapping[str, Any], subject: str) -> None:
    done = asking.send("PUT", "slice-workspace", {"workspaceName": name, **fields})
    report(subject, done["change"])


def kubeconfig(
    slice_: Annotated[str, typer.Argument(metavar="SLICE", help="The slice.", show_default=False)],
    cluster: Annotated[str, typer.Option(metavar="C", help="The cluster.", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write it there, for your eyes only. Default: stdout.", show_default=False
        ),
    ] = None,
) -> None:
    """Get a kubeconfig of a slice's namespaces in a cluster. Those you got before end at once.

    \b
    Example:
      egs kubeconfig vision --cluster east --out ~/.kube/vision

    The server puts a token in that lives for an hour; it is a secret.
    """
    done = asking.send("POST", "kube-config", {"workspaceName": slice_, "clusterName": cluster})
    if out is None:
        output.text(done["kubeConfig"].rstrip("\n"))
        return
    _written(out, done["kubeConfig"])
    output.note(f"wrote {out}; use it with `kubectl --kubeconfig {out} get pods`")


def _written(out: Path, text: str) -> None:
    path = out.expanduser().absolute()
    if any((place / ".git").exists() for place in path.parents):
        raise not_allowed(
            f"{out} is inside of a Git work tree, where it may get into a commit; write it elsewhere"
        )
    try:
        # Only its owner may ever read it, and nobody ever finds half of it.
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).replace(path)
    except OSError as error:
        raise wrong_use(f"--out {out}: it cannot be written ({error.strerror})") from error


# Some commands call their option `output`, as those on a repository do; the module of that name is meant here.
_data, _note = output.data, output.note
