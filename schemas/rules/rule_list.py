"""Every rule that a document can break: the list shared by code, tests and docs/reference/rules.md.

`severity` belongs to the rule, not to the case: an error refuses the document (or, for a rule across files, the
change); a warning or a notice refuses nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from schemas.rules.problems import Severity


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: its stable id, its meaning, and general advice."""

    id: str
    meaning: str
    fix: str
    severity: Severity = "error"


_YAML = (
    Rule("TooLarge", "A file may have at most 64 KiB.", "make the file smaller"),
    Rule("NotUtf8", "A file is UTF-8 text.", "save the file as UTF-8"),
    Rule(
        "ForbiddenCharacter",
        "Control characters, and characters that are invisible or reorder the text on the screen, are refused.",
        "delete the character, or type it again",
    ),
    Rule("BadYaml", "The file is not YAML.", "correct the syntax here"),
    Rule("EmptyDocument", "The file holds no document.", "write a document, or delete the file"),
    Rule("SeveralDocuments", "A file holds one document.", "give every document a file of its own"),
    Rule("DirectiveUsed", "%YAML and %TAG lines are refused.", "delete the line"),
    Rule("AnchorUsed", "Anchors (&name) are refused.", "write the value itself, or quote the text"),
    Rule("AliasUsed", "Aliases (*name) are refused.", "write the value itself, or quote the text"),
    Rule("TagUsed", "Tags (!name) are refused.", "delete the tag, or quote the text"),
    Rule("DuplicateKey", "A key may be given once.", "keep one of the two"),
    Rule("KeyNotString", "Keys are text.", "quote it"),
    Rule("AmbiguousScalar", "YAML readers disagree about this unquoted text.", "quote it"),
    Rule("NumberTooLarge", "Numbers are at most 2^53.", "use a smaller number, or quote it"),
    Rule("TooDeep", "Values nest at most 32 deep.", "nest less"),
    Rule("TooManyValues", "A file holds at most 20,000 values.", "make the file smaller"),
)

_DOCUMENT = (
    Rule(
        "NotAFile",
        "Documents are regular files, not links, programs or modules.",
        "commit a plain file (mode 100644)",
    ),
    Rule("NotAMapping", "A document is a mapping of fields.", "begin with apiVersion, kind, metadata, spec"),
    Rule("UnknownField", "The kind has no such field.", "correct the name, or delete the field"),
    Rule("MissingField", "A required field is absent.", "add the field"),
    Rule("WrongType", "The value is of another type.", "write a value of the type named"),
    Rule("BadValue", "The value is outside what the field allows.", "write an allowed value"),
    Rule("WrongKind", "The folder holds another kind of document.", "correct kind, or move the file"),
    Rule("WrongVersion", "apiVersion names the format.", "write apiVersion: egs.dev/v1alpha1"),
    Rule("NameMismatch", "metadata.name equals the name of the file or folder.", "rename one of the two"),
    Rule(
        "FolderMismatch",
        "spec.slice and spec.gpr equal the folders that hold the file.",
        "correct the field, or move the file",
    ),
    Rule(
        "StrayFile",
        "A file here that is not a document has no effect.",
        "move or rename it, or delete it",
        "warning",
    ),
    Rule("MemoryInMiB", "memoryPerGpu above 4096 is taken as MiB.", "write GB", "warning"),
)

_ACROSS = (
    Rule("ProjectMissing", "A repository has a project.yaml.", "add project.yaml with at least one admin"),
    Rule(
        "UnknownSlice", "The slice has no slice.yaml.", "add slices/<slice>/slice.yaml, or correct the name"
    ),
    Rule("UnknownCluster", "No file in clusters/ has this name.", "correct the name, or add the cluster"),
    Rule("UnknownTemplate", "No file in templates/ has this name.", "correct the name, or add the template"),
    Rule(
        "UnknownRequest",
        "The approval names a GPR that does not exist.",
        "correct the folder, or delete the approval",
    ),
    Rule(
        "BadManifest",
        "An object of a workload has apiVersion, kind and metadata.name, and nothing that the controller or the "
        "cluster sets.",
        "correct the object",
    ),
    Rule(
        "KindNotAllowed",
        "A workload has objects of the kinds that docs/reference/kinds/workload.md lists.",
        "use one of these kinds, or apply the object yourself",
    ),
    Rule("DuplicateObject", "Objects of a workload differ in kind or name.", "rename one of the two"),
    Rule(
        "NamespaceNotInSlice",
        "A workload runs in one of its slice's namespaces.",
        "name one of the slice's namespaces",
    ),
    Rule(
        "RequestMissing",
        "A workload runs on the nodes of a request of its slice.",
        "add the request, or correct spec.gpr",
        "warning",
    ),
    Rule(
        "EndpointNameTooLong",
        "An endpoint's and a version's name make a Deployment's, of at most 46 characters; KServe takes 10 of these.",
        "choose a shorter name",
    ),
    Rule("EndpointNameDigit", "An endpoint's name begins with a letter, like a Service's.", "rename it"),
    Rule("DuplicateVersion", "Versions of an endpoint differ in name.", "rename one of the two"),
    Rule(
        "UnknownVersion", "Weights are of versions of the endpoint.", "correct the name, or add the version"
    ),
    Rule(
        "WeightsNotWhole",
        "The weights of an endpoint's versions are 100 together.",
        "change the weights so that they add up to 100",
    ),
    Rule(
        "ReplicasReversed", "The least number of replicas is no more than the most.", "exchange min and max"
    ),
    Rule(
        "ScalingMissing",
        "Something scales a version whose number of replicas may change.",
        "add spec.scaling, or give min and max the same number",
    ),
    Rule(
        "TooManyGpusServed",
        "The replicas of a request's endpoints, as many as there may be, fit onto its nodes together.",
        "lower replicas.max, or ask for more nodes in the request",
    ),
    Rule(
        "NoSpareGpu",
        "While replicas are replaced, those beyond their number fit onto the request's nodes too.",
        "write maxSurge: 0, or leave GPUs free for it",
    ),
    Rule(
        "GatewayMissing",
        "Each cluster of the slice has a Gateway for an endpoint's route.",
        "have an admin add spec.gateway to the cluster",
        "warning",
    ),
    Rule(
        "PortalMissing",
        "Each cluster of the slice says where KEDA finds the portal.",
        "have an admin add spec.portal to the cluster",
        "warning",
    ),
    Rule(
        "HostnameTaken",
        "No two slices' endpoints answer to the same hostname: by name, by wildcard, or as a route without hostnames.",
        "choose another hostname, or ask the other slice to give it up",
    ),
    Rule(
        "MetricsMissing",
        "Each cluster of the slice has a Prometheus that shows how a new version does.",
        "have an admin add spec.metrics.prometheus to the cluster",
        "warning",
    ),
    Rule("UnknownShape", "No allowed cluster has such GPUs.", "ask for a shape that exists"),
    Rule(
        "ClusterNotAllowed",
        "The slice does not span this cluster.",
        "name clusters of the slice, or add it there",
    ),
    Rule(
        "NothingToAskFor",
        "Neither the request nor its template gives nodes or duration.",
        "give nodes and duration",
    ),
    Rule("FitsNowhere", "No pool could ever hold the request.", "ask for what a pool has"),
    Rule("DurationTooLong", "The slice's hard limit on duration.", "ask for less time"),
    Rule("PriorityTooHigh", "The slice's hard limit on priority.", "lower spec.priority"),
    Rule("TooManyNodes", "The slice's hard limit on nodes, or on their GPUs.", "ask for fewer nodes"),
    Rule("TooMuchMemory", "The slice's hard limit on memory of a GPU.", "ask for less memory"),
    Rule(
        "TooManyGpuHours",
        "The slice's hard limit on GPU-hours per month is less than this request alone needs.",
        "ask for fewer nodes or less time",
    ),
    Rule("ShapeNotAllowed", "The slice's hard limit on shapes.", "ask for a shape the slice may use"),
    Rule(
        "NeedsApproval",
        "The request exceeds quota, limits or approval policy: an admin must approve it.",
        "have an admin approve it, or ask for less",
        "notice",
    ),
    Rule(
        "DuplicateAdmin",
        "Approvals are filed under an admin's short name, so short names are unique.",
        "give one of the two another name",
    ),
    Rule("DuplicatePool", "Pools of a cluster have different names.", "rename one of the two"),
    Rule("DuplicateNode", "Nodes of a cluster have different names.", "rename one of the two"),
    Rule(
        "UnknownPool",
        "A maintenance or a reserve names a pool the cluster does not have.",
        "correct the name",
    ),
    Rule("UnknownNode", "A maintenance names a node the cluster does not have.", "correct the name"),
    Rule(
        "NodesOrSelector",
        "A pool has either a number or list of nodes, or a selector.",
        "give either nodes or selector",
    ),
    Rule(
        "ElasticPool",
        "The nodes of an elastic pool come and go: a real cluster finds them by a selector and scales a target, a "
        "simulated cluster makes them.",
        "delete nodes; with driver kubernetes give selector and elastic.target, otherwise neither",
    ),
    Rule("BadLabel", "A selector's keys are Kubernetes label keys.", "correct the key"),
    Rule(
        "OneAccess",
        "A cluster is accessed in exactly one way.",
        "keep one of inCluster, kubeconfig, secret and pull; context goes with kubeconfig",
    ),
    Rule(
        "OnlyKubernetes",
        "A simulated cluster has no access and finds no nodes.",
        "delete the field, or set driver: kubernetes",
    ),
    Rule("DuplicateProduct", "A device product has one shape.", "keep one of the two"),
    Rule("EndBeforeBegin", "A window ends after it begins.", "correct begin or end"),
    Rule(
        "ReservedTwice",
        "Reservations of a pool do not overlap.",
        "make one of them, or give each a pool of its own",
    ),
    Rule(
        "ReservedNodes",
        "A reservation is for at most the nodes that its pool lists.",
        "delete nodes, or give it a pool of its own",
    ),
    Rule("ReservedMinimum", "An elastic pool that is reserved keeps no nodes.", "set min and warm to 0"),
    Rule("BadThresholds", "clearTemperature is at most maxTemperature.", "lower clearTemperature"),
    Rule(
        "NamespaceTaken",
        "A namespace of a cluster belongs to one slice; with services across clusters, in all clusters.",
        "use another namespace",
    ),
    Rule(
        "WorkspaceMade",
        "A request for a slice that has a file of its own has no effect.",
        "delete the request",
        "notice",
    ),
    Rule(
        "TooManyRequests",
        "A slice's folder holds too many GPR files; the newest are refused, one by one.",
        "delete finished requests (egs prune) and file it again, or ask an admin for more (limits.requestsPerSlice)",
    ),
    Rule(
        "NotAnAdmin",
        "An approval is filed under the name of an admin of the project.",
        "file it as <admin's handle>.yaml",
    ),
    Rule("LimitMissing", "An approval says how much it approves.", "add spec.limit with gpus and nodes"),
    Rule(
        "UnsignedApproval",
        "An approval without signature or expiry counts only if main is not verified.",
        "sign it: egs approve",
        "notice",
    ),
    Rule(
        "DuplicateSecret",
        "API keys are unique: of several with the same digest none is accepted.",
        "delete all but one; if it was copied from another, make a new one with `egs key create`",
    ),
    Rule(
        "KeyExpired",
        "An API key is refused from its notAfter on.",
        "delete its file when it is not needed any more; `egs key create` makes a new one",
        "notice",
    ),
    Rule(
        "DuplicateProfile",
        "A person has one profile; of several none is used.",
        "put the routes into one file, and delete the other",
    ),
    Rule("DuplicateRoute", "Routes of a document have different names.", "rename one of the two"),
    Rule("UnknownEvent", "A route names a reason that no event has.", "correct the name"),
    Rule("UnknownTimeZone", "Quiet hours need a known time zone.", "write an IANA name, or UTC"),
    Rule(
        "QuietWithoutLength",
        "Quiet hours begin and end at different times.",
        "correct begin or end; without quiet nothing is delayed",
    ),
    Rule("DigestTooLong", "A digest covers at most 7 days.", "write at most 7d"),
    Rule("UnknownWord", "A template uses names of event fields after $.", "correct the name"),
    Rule("DuplicateCluster", "A binding has each cluster once.", "merge the two entries"),
    Rule(
        "DefaultNotBound",
        "The default of a cluster is one of the templates bound there.",
        "add it to templates, or choose another",
    ),
    Rule(
        "TemplateElsewhere",
        "A template that names clusters can be bound only there.",
        "bind it in a cluster that it names, or add the cluster to it",
    ),
    Rule(
        "TemplateNotBound",
        "Requests of a slice that has a binding name bound templates, or none.",
        "name a bound template, or none",
    ),
    Rule(
        "StaleApproval",
        "The request has changed since it was approved.",
        "approve it again as it is now",
        "warning",
    ),
)

_EDITS = (
    Rule(
        "ForbiddenEdit",
        "A request that holds nodes keeps its terms.",
        "undo the edit, or release the request and file another",
    ),
    Rule(
        "HeldFileDeleted",
        "Deleting its file does not end a request that holds nodes.",
        "keep the file and set earlyRelease: true",
        "warning",
    ),
)

RULES: tuple[Rule, ...] = _YAML + _DOCUMENT + _ACROSS + _EDITS
"""In the order in which they are checked."""

BY_ID = {rule.id: rule for rule in RULES}


def fix_of(rule: str) -> str:
    """The general advice of a rule, for findings without their own."""
    return BY_ID[rule].fix


def severity_of(rule: str) -> Severity:
    """The severity of a rule."""
    return BY_ID[rule].severity
