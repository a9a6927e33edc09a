"""Which of the protections required by docs/explain/security.md a forge lacks for a branch. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.forges.json_fields import Row

CHECK = "egs/check"
"""Context of the commit status that must pass before a merge."""


def github_lacks(branch: str, rules: Sequence[Row], older: Row | None) -> tuple[str, ...]:
    """According to the rules in force for the branch, and its classic protection if readable."""
    kinds = {row.text("type") for row in rules}
    pulls = [row.row("parameters") for row in rules if row.text("type") == "pull_request"]
    reviews = older.maybe_row("required_pull_request_reviews") if older is not None else None
    asked = {
        check.text("context")
        for row in rules
        if row.text("type") == "required_status_checks"
        for check in row.row("parameters").rows("required_status_checks")
    }
    if older is not None and (checks := older.maybe_row("required_status_checks")) is not None:
        asked |= set(checks.texts("contexts"))
    resets = any(row.flag("dismiss_stale_reviews_on_push") for row in pulls)
    resets = resets or (reviews is not None and reviews.flag("dismiss_stale_reviews"))
    return _sentences(
        branch,
        rewrites="non_fast_forward" not in kinds and _allows(older, "allow_force_pushes"),
        deletes="deletion" not in kinds and _allows(older, "allow_deletions"),
        skips_pulls=not pulls and reviews is None,
        skips_check=CHECK not in asked,
        keeps_approvals=not resets,
    )


def _allows(older: Row | None, name: str) -> bool:
    found = None if older is None else older.maybe_row(name)
    return found is None or found.flag("enabled")


def gitlab_lacks(branch: str, project: Row, protected: Row | None) -> tuple[str, ...]:
    """According to the protected branch and the project's settings."""
    pushers = [] if protected is None else protected.rows("push_access_levels")
    return _sentences(
        branch,
        rewrites=protected is None or protected.flag("allow_force_push"),
        deletes=protected is None,
        skips_pulls=protected is None or any(_may_push(row) for row in pushers),
        skips_check=not project.flag("only_allow_merge_if_pipeline_succeeds"),
        keeps_approvals=False,  # an approval older than the last push does not count here
    )


def _may_push(level: Row) -> bool:
    return level.has("user_id") or level.has("group_id") or level.values.get("access_level") != 0


def gitea_lacks(branch: str, rule: Row | None) -> tuple[str, ...]:
    """According to the rule of that name."""
    return _sentences(
        branch,
        rewrites=rule is None or rule.flag("enable_force_push"),
        deletes=rule is None,
        skips_pulls=rule is None or rule.flag("enable_push"),
        skips_check=rule is None
        or not rule.flag("enable_status_check")
        or CHECK not in rule.texts("status_check_contexts"),
        keeps_approvals=rule is None or not rule.flag("dismiss_stale_approvals"),
    )


def _sentences(
    branch: str, *, rewrites: bool, deletes: bool, skips_pulls: bool, skips_check: bool, keeps_approvals: bool
) -> tuple[str, ...]:
    found = {
        f"{branch} can be rewritten: forbid force pushes to it": rewrites,
        f"{branch} can be deleted: protect it": deletes,
        f"{branch} can be pushed to directly: require pull requests": skips_pulls,
        f"a change can be merged into {branch} although {CHECK} failed: require that status": skips_check,
        f"approvals stay after further pushes to a pull request for {branch}: have them dismissed": keeps_approvals,
    }
    return tuple(sentence for sentence, lacks in found.items() if lacks)
