"""Every `errorKey`, with its status and an example message. docs/reference/api.md lists the same. Values only.

Held by tests/portal/test_documented.py: every key in the sources is here, and some path documents it.
"""

from __future__ import annotations

from collections.abc import Mapping

_BY_STATUS: Mapping[int, Mapping[str, str]] = {
    400: {"BadRequest": "the body is not valid JSON", "ApiKeyInvalid": "this cannot be an API key"},
    401: {
        "Unauthenticated": "give an API key or a session as `Authorization: Bearer …`",
        "ApiKeyNotFound": "no manifest in keys/ has this API key",
        "ApiKeyRevoked": "the API key ci is revoked",
        "ApiKeyExpired": "Api Key has expired",
        "SessionEnded": "this session has ended, or another server issued it; log in again",
        "LoginFailed": "the identity provider's answer is not valid; log in again",
        "SignatureMissing": "sign the body with a secret of --hook-secrets",
        "SignatureWrong": "sign the body with a secret of --hook-secrets",
    },
    403: {
        "Forbidden": "only an admin of the project may do this",
        "CrossSite": "a browser session may change things only from this portal's own pages; elsewhere use an API key",
        "OwnRequest": "you filed vision/train yourself; another admin approves it",
        "PushRefused": "the server refused the push to main, which may be protected; let the portal push there",
    },
    404: {
        "NotFound": "there is no workspace nlp, or you may not see it",
        "HooksOff": "give the portal --hook-secrets FILE",
        "NoIdentityProvider": "no identity provider is configured here; log in with an API key",
        "NoSuchPath": "there is no such path; /openapi.json lists all",
        "WriteNotFound": "there is no change 5b0c4f6a1d8e4a7f9d3c2b1a0f9e8d7c, or you may not see it",
    },
    405: {"MethodNotAllowed": "this path does not support that method; /openapi.json lists all"},
    408: {"BodyTooSlow": "the body did not arrive within 15 s"},
    409: {
        "Conflict": "bo@example.com changed templates/small.yaml meanwhile (spec.duration); look at it again, "
        "then try again",
        "AlreadyProposed": "the branch requests/nlp already proposes another change of requests/nlp.yaml; have it "
        "merged or deleted, then try again",
        "ApiKeyAlreadyExists": "an API key ci exists or existed already; choose another name",
        "EndpointAlreadyExists": "an endpoint vision/captions exists already; choose another name, or edit its file",
        "GprAlreadyExists": "a request vision/train exists already; choose another name",
        "GprTemplateAlreadyExists": "template small exists already; change it with PUT",
        "GprTemplateBindingAlreadyExists": "slice vision has a binding already; change it with PUT",
        "GprTemplateInUse": "template small is offered to vision; change the binding first",
        "GpuAlreadyProvisioned": "vision/train is Provisioned and keeps its terms (nodes); release it, or file another",
        "GpuAlreadyReleased": "vision/train is Completed and has no nodes any more; file a new request",
        "IdempotencyKeyReused": "this Idempotency-Key was already used for another change; use a new key for each "
        "change",
        "NotProvisioned": "vision/train has no nodes yet; cancel it instead",
        "NotSeenYet": "the controller has not seen vision/train yet; decide a moment later",
        "NothingToDecide": "vision/train does not wait for a decision",
        "Unchanged": "vision/train has these values already; nothing to change",
        "WorkloadAlreadyExists": "a workload vision/finetune exists already; choose another name, or delete it",
        "WorkspaceAlreadyExists": "workspace vision exists already; choose another name, or ask its owner to add you",
        "WorkspaceInUse": "vision/train is not over yet; release or cancel it first",
        "WorkspaceNotReady": "the namespaces of workspace vision do not exist yet; try again in a minute",
    },
    410: {"StateGone": "no state of 2026-05-01T08:00:00Z is kept; the oldest is of 2026-08-24T08:50:12Z"},
    413: {"TooLarge": "a body has at most 1048576 bytes"},
    422: {
        "BadParameters": "clusters: there is no cluster west; choose from east, north",
        "NoKubeconfig": "the portal has no kubeconfig for cluster east; its operator can give it one",
    },
    429: {"TooManyRequests": "too many requests; wait 2 seconds"},
    500: {"InternalError": "an error in the server; its log has details under the request id"},
    503: {
        "Unavailable": "the repository does not answer; try again in 5 seconds",
        "OutcomeUnknown": "the server did not answer whether the change arrived; look for it, or try again with "
        "the same Idempotency-Key",
    },
}
STATUS: Mapping[str, int] = {key: status for status, keys in _BY_STATUS.items() for key in keys}
"""The status of each key."""
SENTENCE: Mapping[str, str] = {key: text for keys in _BY_STATUS.values() for key, text in keys.items()}
"""An example message of each key."""
KEYS = sorted(STATUS)
