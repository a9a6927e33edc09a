"""The forge of a command's repository: from the EGS_FORGE… variables, else from its address."""

from __future__ import annotations

import os
import re

from reconciler.settings import ForgeAddress
from reconciler.sources.command_errors import WrongUse
from reconciler.trust.trust_options import forge_from_environment, known_forge
from schemas.errors import UserError


def forge_address(remote: str) -> ForgeAddress | None:
    """The forge of a remote; None: plain Git, or an unknown forge."""
    try:
        return known_forge(forge_from_environment(os.environ), remote)
    except UserError as error:
        raise WrongUse(
            str(error).replace("--forge-", "EGS_FORGE_").replace("give --forge ", "set EGS_FORGE to ")
        ) from error


def page_to_open(address: ForgeAddress, branch: str) -> str:
    """The page for opening a pull request for a branch."""
    if address.kind == "gitlab":
        return f"{home_page(address)}/-/merge_requests/new?merge_request%5Bsource_branch%5D={branch}"
    return f"{home_page(address)}/compare/main...{branch}"


def home_page(address: ForgeAddress) -> str:
    """The page of the repository on its forge, without a slash at the end."""
    web = re.sub(r"/api/v\d$", "", address.api.rstrip("/")).replace(
        "https://api.github.com", "https://github.com"
    )
    return f"{web}/{address.repository}"
