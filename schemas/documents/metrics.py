"""Where values of a cluster's GPUs over time come from."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from schemas.documents.base import Model
from schemas.reading.units import Name

FileName = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$",
        description="Name of a file in the portal's folder for metrics; never a path.",
        examples=["east-prometheus"],
    ),
]

LabelName = Annotated[str, Field(pattern=r"^[a-zA-Z_][a-zA-Z0-9_]{0,127}$")]


ADDRESS = re.compile(r"https?://(?P<user>[^/?#]*@)?[^/?#@\s]+(/[^?#\s]*)?(?P<rest>[?#].*)?")


def _plain_url(url: str) -> str:
    """A password in a manifest would be in the repository for ever, and a query would end up before ours."""
    parts = ADDRESS.fullmatch(url)
    if parts is None:
        raise ValueError("give an address as https://prometheus.example.com")
    if parts["user"] is not None:
        raise ValueError("leave user and password out; name a file with them in `auth`")
    if parts["rest"] is not None:
        raise ValueError("leave out what follows `?` or `#`")
    return url


class PrometheusAuth(Model):
    """How the portal authenticates."""

    file: FileName = Field(description="File with the secret, in the portal's folder; never a path.")
    kind: Literal["bearer", "basic"] = Field(
        "bearer", description="bearer: the file has a token; basic: it has USER:PASSWORD."
    )


class Prometheus(Model):
    """A Prometheus, or anything with its query API, that has dcgm-exporter's or our agents' metrics."""

    url: Annotated[str, AfterValidator(_plain_url)] = Field(
        max_length=2000,
        description="Base address, without /api/v1.",
        examples=["https://prometheus.example.com"],
    )
    matchers: dict[LabelName, Annotated[str, Field(max_length=253)]] = Field(
        {},
        max_length=16,
        description="Labels that all series of this cluster have; needed where it has several clusters.",
        examples=[{"cluster": "east"}],
    )
    auth: PrometheusAuth | None = Field(None, description="Absent: none is asked for.")
    namespace: Name | None = Field(
        None,
        description="Namespace of this cluster whose pods read the metrics of endpoints' pods; absent: none may.",
    )
    ca: FileName | None = Field(
        None, description="File with its CA certificate, in the portal's folder; absent: the system's."
    )


class Metrics(Model):
    """Source of telemetry; absent: the agents of the cluster, if they show it."""

    prometheus: Prometheus | None = Field(None, description="Absent: the cluster's agents.")
