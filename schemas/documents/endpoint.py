"""Endpoint: a served model on the nodes of one request, in one or more versions that share its traffic."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from schemas.documents.base import Document, Model
from schemas.reading.units import Lasting, Line, LongName, Name

LONGEST_VERSION, LONGEST_DEPLOYMENT = 20, 46
"""Characters of a version's name, and of a Deployment's: Kubernetes cuts longer ones in the names of its pods."""
LONGEST_WAIT = timedelta(days=1)


def _at_most_a_day(value: timedelta) -> timedelta:
    if value > LONGEST_WAIT:
        raise ValueError("it is at most 1d")
    return value


VersionName = Annotated[
    str,
    Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,18}[a-z0-9])?$", max_length=LONGEST_VERSION, examples=["v1"]),
]
Wait = Annotated[Lasting, AfterValidator(_at_most_a_day)]
Weight = Annotated[int, Field(ge=0, le=100)]
Hostname = Annotated[
    str,
    Field(
        pattern=r"^(\*\.)?[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?([.][a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$",
        max_length=253,
        examples=["chat.example.com"],
    ),
]


class Gateway(Model):
    """A Gateway of the cluster (Gateway API) to which routes of endpoints attach."""

    name: LongName = Field(description="Its name.")
    namespace: Name = Field(
        description="Its namespace; its listeners allow routes from namespaces of slices."
    )
    proxies: Name | None = Field(
        None,
        description="Namespace of the pods that carry its traffic, which reach the endpoints' pods; absent: its own.",
    )
    listener: LongName | None = Field(
        None, description="Name of one listener; absent: all that allow the route."
    )


class Replicas(Model):
    """How many replicas of a version run; never none, since the nodes are held anyway."""

    min: int = Field(1, ge=1, le=1000, description="At least.")
    max: int = Field(
        1, ge=1, le=1000, description="At most; with more than `min` something scales it: `scaling`."
    )


class Version(Model):
    """One version of the model, with what serves it."""

    name: VersionName = Field(description="Its name; part of the names of its objects.")
    image: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,499}$",
        description="Container image of the server.",
        examples=["vllm/vllm-openai:v0.11.0"],
    )
    model: Line = Field(
        min_length=1,
        max_length=500,
        description="Model that it serves: a name on the model hub, or a path in the container.",
        examples=["Qwen/Qwen2.5-7B-Instruct"],
    )
    args: tuple[Annotated[str, Field(max_length=1000)], ...] = Field(
        (),
        max_length=100,
        description="More arguments of the server.",
        examples=[["--max-model-len", "8192"]],
    )
    gpus_per_replica: int = Field(1, ge=1, le=64, description="GPUs of one replica; all of one node.")
    replicas: Replicas = Field(Replicas(), description="How many replicas run.")
    secret: LongName | None = Field(
        None, description="Secret of the namespace whose keys are environment variables, such as HF_TOKEN."
    )
    cache: LongName | None = Field(
        None,
        description="PersistentVolumeClaim of the namespace for downloaded weights; absent: none are kept.",
    )


class Route(Model):
    """How requests reach it."""

    hostnames: tuple[Hostname, ...] = Field(
        (), max_length=16, description="Names that it answers to; absent: all of the Gateway's listener."
    )
    path: str = Field(
        "/",
        pattern=r"^(/|(/[.]*[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+/?)$",
        max_length=201,
        description="Only paths that begin so, which reach the server as they are; without empty parts, `.` and `..`.",
    )


class Scaling(Model):
    """What sets the number of replicas between `min` and `max`."""

    by: Literal["keda", "hpa"] = Field(
        "keda",
        description="keda: a ScaledObject that asks the cluster's `portal` how many; hpa: a HorizontalPodAutoscaler on "
        "the server's own metric, which needs an adapter for metrics of pods.",
    )
    requests_per_replica: int = Field(
        16,
        ge=1,
        le=100_000,
        description="Requests for which there is one replica: those that run, and with keda those that wait too.",
    )
    authentication: LongName | None = Field(
        None,
        description="With keda: TriggerAuthentication of the namespace with an API key of a Viewer as parameter token.",
    )


class Bounds(Model):
    """What a version may show while its weight grows; beyond, the weights go back."""

    error_rate: float | None = Field(
        None, gt=0, le=1, description="Share of its requests that may fail; absent: any."
    )
    time_to_first_token: float | None = Field(
        None, gt=0, le=600, description="Seconds to the first token for 95 of 100 requests; absent: any."
    )

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.error_rate is None and self.time_to_first_token is None:
            raise ValueError("give errorRate, timeToFirstToken, or both")
        return self


class Rollout(Model):
    """How new weights come about: in steps, and each is observed."""

    step: int = Field(25, ge=1, le=100, description="Percent of the traffic that moves at once.")
    interval: Wait = Field(
        timedelta(minutes=5), description="Time for which each step is observed before the next, at most 1d."
    )
    bounds: Bounds = Field(description="When the weights go back to what they were.")


class EndpointSpec(Model):
    """A served model: where it runs, its versions, and how traffic is shared."""

    slice: Name = Field(description="The slice; equals the folder.")
    gpr: Name = Field(
        description="The request of this slice on whose nodes it runs. The endpoint waits until it is Provisioned."
    )
    namespace: Name | None = Field(
        None, description="One of the slice's namespaces; absent: the first one of slice.yaml."
    )
    backend: Literal["vllm", "kserve"] = Field(
        "vllm",
        description="vllm: a Deployment of each version; kserve: an InferenceService of each, in a cluster that has "
        "KServe.",
    )
    versions: tuple[Version, ...] = Field(min_length=1, max_length=10, description="Its versions.")
    weights: dict[VersionName, Weight] = Field(
        min_length=1,
        max_length=10,
        description="Percent of the traffic by version, 100 together. A version without a weight runs and gets none.",
        examples=[{"v1": 90, "v2": 10}],
    )
    max_surge: int = Field(
        0,
        ge=0,
        le=100,
        description="Replicas of a version beyond its number while it is edited. 0: an old one stops before the new "
        "one starts.",
    )
    drain: Wait = Field(
        timedelta(minutes=1),
        description="Longest time that a running answer is waited for, at most 1d. Traffic stops this long before the "
        "notice at the strict end.",
    )
    route: Route | None = Field(
        None, description="How requests from outside reach it, by the cluster's `gateway`; absent: none do."
    )
    scaling: Scaling | None = Field(
        None, description="What sets the number of replicas; needed where `max` is more than `min`."
    )
    rollout: Rollout | None = Field(
        None,
        description="How new weights come about; absent: at once. Needs `metrics.prometheus` of the cluster.",
    )

    def weight(self, version: str) -> int:
        """Percent of the traffic that the document gives a version."""
        return self.weights.get(version, 0)


class Endpoint(Document):
    """`slices/<slice>/endpoints/<name>.yaml`; served while its request holds nodes."""

    kind: Literal["Endpoint"] = Field("Endpoint", description="Kind of document.")
    spec: EndpointSpec = Field(description="Its versions, and the request on whose nodes they run.")
