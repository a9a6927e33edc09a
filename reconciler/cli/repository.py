"""The backend of the commands for a repository. Each method imports what it needs when it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from egs.commands.backend import PAGES, Access, Decision, Filed, Ways, Where
from egs.commands.output import Form, Row

if TYPE_CHECKING:
    from reconciler.changes.change import Means


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository, and how a change reaches its main branch."""

    where: Where

    def rows(self, kind: str, filters: Mapping[str, Any]) -> list[Row]:
        if kind in ("workloads", "gpus", "alerts"):
            from reconciler.cli.answers.running import running_rows

            return list(running_rows(self.where, kind, filters))
        from reconciler.cli.lists import rows

        return list(rows(self.where, kind, filters))

    def whole(self, kind: str, name: str) -> Row:
        from reconciler.cli.lists import described

        return described(self.where, kind, name)

    def calendar(self, filters: Mapping[str, Any]) -> Row:
        from reconciler.queries.calendars.calendar_command import calendar_of

        return calendar_of(self.where.repo, self.where.now, self.where.at, filters)

    def plan(self, ref: str | None, against: str | None) -> Row:
        from reconciler.queries.plans import plan_json, plan_then

        if self.where.at is not None:
            self._refuse_with_at("--ref" if ref else "--against" if against else "")
            return plan_then(self.where.repo, self.where.now, self.where.at)
        return plan_json(self.where.repo, self.where.now, ref, against)

    def instance(self, file: str, pools: Sequence[str], form: str, is_fair: bool) -> int:
        from reconciler.queries.plans import show_instance
        from schemas.documents.scheduling import Fairness

        self._refuse_with_at("--instance")
        return show_instance(file, pools, self.where.now, form, Fairness() if is_fair else None)

    def quotes(self, slice_: str, terms: Mapping[str, Any]) -> tuple[list[Row], list[str]]:
        from reconciler.queries.quotes import quoted

        rows, notes = quoted(self.where.repo, self.where.now, slice_, nested(terms))
        return list(rows), notes

    def what_if(
        self, manifests: Mapping[str, str], edits: Sequence[tuple[str, Sequence[str]]], ended: Sequence[str]
    ) -> Row:
        from reconciler.cli.answers.asked_change import what_if

        return what_if(self.where, manifests, edits, ended)

    def why(self, request: str) -> Row:
        from reconciler.queries.why import why_json

        return why_json(self.where.repo, self.where.now, request)

    def diagnosis(self, workload: str, slice_: str | None) -> Row:
        from reconciler.cli.answers.running import diagnosed

        return diagnosed(self.where, workload, slice_)

    def advice(self, slice_: str, terms: Mapping[str, Any]) -> Row:
        from reconciler.queries.demand.slice_advice import Question, advice_of

        asked = Question(
            hours=terms["hours"],
            patience=terms["patience"],
            cold_start=terms["coldStart"],
            gpus_per_node=terms["gpusPerNode"],
            shapes=tuple(terms["gpuShape"] or ()),
            endpoint=terms.get("endpoint", ""),
        )
        if not asked.endpoint:
            return advice_of(self.where.repo, self.where.now, slice_, asked)
        from reconciler.telemetry.served_history import PastLoads

        files = self.where.metrics_files
        with closing(PastLoads(None if files is None else Path(files).expanduser())) as past:
            return advice_of(self.where.repo, self.where.now, slice_, asked, past)

    def insights(self, days: int) -> Row:
        from reconciler.queries.insight_rows import insights_of

        return insights_of(self.where.repo, self.where.now, days)

    def undo(self, commit: str, *, is_trial: bool) -> Row:
        from reconciler.changes.undo_command import undone

        return undone(self._means(), commit, self.where.now, is_trial=is_trial)

    def blame(self, thing: str, field: str | None, limit: int) -> Row:
        from reconciler.queries.past.blame_command import blame_of

        return blame_of(self.where.repo, thing, field, limit)

    def differences(self, first: str, second: str | None) -> Row:
        from reconciler.queries.past.difference_rows import difference_of

        return difference_of(self.where.repo, self.where.now, first, second)

    def in_clusters(self, ways: Ways, form: Form) -> int:
        from reconciler.cli.answers import reachable_clusters as reach
        from reconciler.cli.answers.cluster_diff import show_differences

        home = reach.home_of(ways.project, ways.namespace)
        reached = reach.Ways(ways.kubeconfigs, ways.kubeconfig, ways.context, ways.state, home)
        return show_differences(self.where.repo, self.where.now, ways.clusters, reached, form)

    def promises(self, months: int) -> Row:
        from reconciler.queries.past.promise_rows import promises_of

        return promises_of(self.where.repo, self.where.now, months)

    def watch(self, slice_: str | None, gpr: str | None, every_s: int) -> Iterator[Row | None]:
        from reconciler.queries.event_search import Filter
        from reconciler.queries.status_changes import follow
        from reconciler.signals import ended_by_signals, looks

        with ended_by_signals() as ended:
            yield from follow(self.where.repo, Filter(slice=slice_, gpr=gpr), looks(every_s, ended))

    def create(self, request: str, terms: Mapping[str, Any], *, is_trial: bool) -> Filed:
        from reconciler.changes.requests import create

        return create(self._means(), request, nested(terms), self.where.now, is_trial=is_trial)

    def run_job(
        self, text: str, about: Mapping[str, str | None], terms: Mapping[str, Any], *, is_trial: bool
    ) -> Row:
        from reconciler.cli.answers.workload_files import run

        return run(self._means(), text, about, nested(terms), self.where.now, is_trial=is_trial)

    def delete_job(self, workload: str) -> None:
        from reconciler.cli.answers.workload_files import delete

        delete(self._means(), workload)

    def create_endpoint(self, endpoint: str, gpr: str, spec: Mapping[str, Any], *, is_trial: bool) -> str:
        from reconciler.cli.answers.endpoint_files import create

        return create(self._means(), endpoint, gpr, spec, self.where.now, is_trial=is_trial)

    def promote_endpoint(self, endpoint: str, version: str, percent: int) -> None:
        from reconciler.cli.answers.endpoint_weights import promote

        promote(self._means(), endpoint, version, percent)

    def roll_back_endpoint(self, endpoint: str) -> None:
        from reconciler.cli.answers.endpoint_weights import rollback

        rollback(self._means(), endpoint)

    def edit(self, request: str, words: Sequence[str]) -> None:
        from reconciler.changes.requests import assignments, change

        edits = assignments(words)
        change(self._means(), request, edits, f"Edit {request}: {', '.join('.'.join(f) for f, _ in edits)}")

    def change(self, request: str, fields: Mapping[str, Any], subject: str) -> None:
        from reconciler.changes.requests import change
        from reconciler.queries.arguments import lasting

        lasting("extend", fields.get("extend"))
        edits = [(tuple(name.split(".")), value) for name, value in fields.items()]
        change(self._means(), request, edits, subject)

    def release(self, request: str) -> None:
        from reconciler.changes.requests import release

        release(self._means(), request)

    def cancel(self, request: str) -> None:
        from reconciler.changes.requests import cancel

        cancel(self._means(), request, self.where.now)

    def restore(self, request: str) -> None:
        from reconciler.changes.requests import restore

        restore(self._means(), request)

    def request_slice(self, name: str, about: Mapping[str, Any], *, is_trial: bool) -> None:
        from reconciler.changes.slices import NewSlice, request

        request(self._means(), NewSlice(name, **about), is_trial=is_trial)

    def create_slice(self, name: str, about: Mapping[str, Any], *, is_trial: bool) -> None:
        from reconciler.changes.slices import NewSlice, create

        create(self._means(), NewSlice(name, **about), is_trial=is_trial)

    def slice_parts(self, name: str) -> Row:
        from reconciler.changes.slices import parts

        return parts(self._means(), name)

    def delete_slice(self, name: str) -> None:
        from reconciler.changes.slices import delete

        delete(self._means(), name)

    def add_member(
        self, name: str, mail: str, *, is_owner: bool, keys: tuple[Path, ...], forge: str | None
    ) -> None:
        from reconciler.changes.members import add
        from reconciler.changes.people import Newcomer

        add(self._means(), name, Newcomer(mail, is_owner, keys, forge))

    def remove_member(self, name: str, mail: str) -> None:
        from reconciler.changes.members import remove

        remove(self._means(), name, mail)

    def decide(self, request: str, decision: Decision) -> None:
        from reconciler.changes.approve import decide

        decide(self.where.repo, request, decision, self.where.author, self.where.now)

    def keys(self) -> list[Row]:
        from reconciler.changes.keys import listed

        return list(listed(self.where.repo, self.where.now))

    def create_key(self, name: str, about: Mapping[str, Any], *, is_trial: bool) -> str:
        from reconciler.changes.keys import NewKey, create

        return create(self._means(), NewKey(name, **about), is_trial=is_trial)

    def revoke_key(self, name: str) -> None:
        from reconciler.changes.keys import revoke

        revoke(self._means(), name)

    def kubeconfig(self, slice_: str, cluster: str, access: Access) -> str:
        from reconciler.cli.answers.member_kubeconfig import given

        return given(self.where.repo, slice_, cluster, access)

    def portal(self, port: int, show: Callable[[str], None]) -> None:
        from reconciler.sources.command_errors import NotAllowed

        serve = PAGES.get()
        if serve is None:
            raise NotAllowed("the portal is not installed here; `egs portal --server URL` opens another one")
        serve(self.where, port, show)

    def _refuse_with_at(self, option: str) -> None:
        from reconciler.sources.command_errors import WrongUse

        if self.where.at is not None and option:
            raise WrongUse(f"--at shows a past state of a repository; leave out {option}")

    def _means(self) -> Means:
        from reconciler.changes.change import Means

        return Means(self.where.repo, self.where.author, self.where.pull_request, self.where.by_default)


def nested(terms: Mapping[str, Any]) -> dict[str, Any]:
    """Fields by dotted name as a request's spec has them, without None."""
    spec: dict[str, Any] = {}
    for name, value in terms.items():
        outer, _, inner = name.partition(".")
        if value is not None:
            spec[outer] = {**spec.get(outer, {}), inner: value} if inner else value
    shapes = spec.get("gpuShape")
    return spec | ({"gpuShape": shapes[0]} if isinstance(shapes, list) and len(shapes) == 1 else {})
