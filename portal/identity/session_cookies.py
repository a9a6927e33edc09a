"""The cookies of a browser: its session, and a login under way. Scripts cannot read them."""

from __future__ import annotations

from starlette.responses import Response

from portal.identity import oidc
from portal.identity.logins import Logins
from portal.identity.sessions import Session, issue

_MOST_COOKIE = 4000
"""Bytes of a cookie; browsers silently drop larger ones."""


def set_session(answer: Response, logins: Logins, session: Session) -> None:
    """ApiError 401 if the session does not fit into a cookie."""
    token = issue(logins.signer, session)
    if len(token) > _MOST_COOKIE:
        raise oidc.refused(f"{session.email} is in more of the project's groups than a cookie can hold")
    _set(answer, logins, logins.cookie, token, int(logins.session_life.total_seconds()))


def forget_session(answer: Response, logins: Logins) -> None:
    _set(answer, logins, logins.cookie, "", 0)


def set_login(answer: Response, logins: Logins, text: str) -> None:
    """The login under way; an empty text ends it."""
    age = int(oidc.LOGIN_LIFE.total_seconds()) if text else 0
    _set(answer, logins, logins.login_cookie, text, age)


def _set(answer: Response, logins: Logins, name: str, text: str, age_s: int) -> None:
    """A cookie that other pages cannot send with a change; age 0 deletes it."""
    answer.set_cookie(
        name, text, max_age=age_s, path="/", secure=logins.is_https, httponly=True, samesite="lax"
    )
