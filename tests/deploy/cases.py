"""Sets of values that are installed in the tests: the least, everything, and what is special about each part."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

BELIEVING = {"trust": {"level": "none"}}
REPO = {"repositories": ["git@forge.example.com:team/fleet.git"], **BELIEVING}
PULL = {**REPO, "role": "cluster", "cluster": "east"}
TARGET = {
    "apiVersion": "cluster.x-k8s.io/v1beta2",
    "resource": "machinedeployments",
    "namespace": "default",
    "name": "h100",
}
NODEPOOL = {"apiVersion": "karpenter.sh/v1", "resource": "nodepools", "name": "h100"}
GROUP = {"apiVersion": "v1", "resource": "replicationcontrollers", "namespace": "default", "name": "gpus"}
EVERY_PART = {"door": {"enabled": True}, "admission": {"enabled": True}, "agents": {"enabled": True}}
CASES: dict[str, Json] = {
    "a controller alone": REPO,
    "a controller of two repositories": {
        **BELIEVING,
        "repositories": ["one=https://forge.example.com/one.git", "two=https://forge.example.com/two.git"],
        "controller": {
            "drivesThisCluster": False,
            "kubeconfigs": "clusters",
            "clusterSecrets": ["west", "north"],
        },
    },
    "a controller with all that can be said": {
        **REPO,
        **EVERY_PART,
        "project": "research",
        "cluster": "east",
        "git": {"secret": "fleet-git"},
        "env": {"HTTPS_PROXY": "http://proxy.example.com:3128", "EGS_STATE": "/var/lib/egs"},
        "image": {
            "repository": "registry.example.com:5000/egs",
            "tag": "1.2",
            "pullPolicy": "Always",
            "pullSecrets": ["registry"],
        },
        "controller": {
            "replicas": 3,
            "hookSecrets": "hooks",
            "kubeconfigs": "clusters",
            "poll": 60,
            "nodeSelector": {"pool": "system"},
            "tolerations": [
                {"key": "system", "operator": "Exists"},
                {"key": "a", "value": "b", "effect": "NoExecute"},
            ],
            "priorityClass": "system-cluster-critical",
            "resources": {"requests": {"cpu": "", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": ""}},
        },
        "networkPolicies": {"egressPorts": [443, 8443]},
    },
    "a portal": {**REPO, "portal": {"enabled": True, "sessionSecret": "session"}},
    "a portal with all that can be said": {
        **REPO,
        "controller": {"routes": "routes"},
        "forge": {"kind": "gitea", "api": "https://forge.example.com/api/v1", "secret": "forge"},
        "portal": {
            "enabled": True,
            "replicas": 3,
            "publicUrl": "https://egs.example.com",
            "sessionSecret": "session",
            "trustsProxy": "10.0.0.0/8",
            "provider": {
                "issuer": "https://id.example.com",
                "client": "gpus",
                "secret": "provider",
                "cliClient": "gpus-cli",
                "groups": "roles",
            },
            "kubeconfigs": "clusters",
            "hookSecrets": "hooks",
            "poll": 10,
            "nodeSelector": {"pool": "system"},
        },
    },
    "one portal that signs": {
        **REPO,
        "controller": {"signingKey": "controller-key"},
        "portal": {
            "enabled": True,
            "replicas": 1,
            "signingKey": "portal-key",
            "provider": {"issuer": "https://id.example.com"},
        },
        "trust": {"level": "signature", "signers": "signers"},
    },
    "one replica needs no budget": {**REPO, "controller": {"replicas": 1}},
    "an image by its digest": {**REPO, "image": {"tag": "1.2", "digest": f"sha256:{'a' * 64}"}},
    "no network policies": {**REPO, "networkPolicies": {"enabled": False}},
    "only names may be asked": {**REPO, "networkPolicies": {"egressPorts": []}},
    "pull mode": PULL,
    "pull mode with every part and two replicas": {**PULL, **EVERY_PART, "apply": {"replicas": 2}},
    "a named repository in pull mode": {
        **PULL,
        "repositories": ["fleet=ssh://git@forge.example.com/fleet.git"],
    },
    "an address with an equals sign": {**PULL, "repositories": ["https://forge.example.com/a=b.git"]},
    "agents without a runtime class": {
        **REPO,
        "cluster": "east",
        "agents": {"enabled": True, "runtimeClass": "", "tolerations": [{"key": "x", "operator": "Exists"}]},
    },
    "agents that show telemetry": {
        **REPO,
        "cluster": "east",
        "agents": {"enabled": True, "telemetry": {"enabled": True}},
        "portal": {"enabled": True, "replicas": 1, "asksAgents": True, "metricsFiles": "prometheus"},
    },
    "agents that name the pods of GPUs": {
        **REPO,
        "cluster": "east",
        "git": {"secret": "fleet-git"},
        "agents": {
            "enabled": True,
            "telemetry": {
                "enabled": True,
                "port": 9500,
                "pods": True,
                "from": [
                    {"ipBlock": {"cidr": "10.0.0.1/32"}},
                    {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}},
                ],
            },
        },
    },
    "keys and a forge": {
        **REPO,
        "cluster": "east",
        "door": {"enabled": True, "signingKey": "door-key"},
        "agents": {"enabled": True, "signingKey": "agents-key"},
        "admission": {"enabled": True},
        "controller": {"signingKey": "controller-key", "hookSecrets": "hooks"},
        "git": {"secret": "fleet-git"},
        "trust": {"level": "both", "signers": "signers", "openPgp": ["ada.asc", "bo.asc"]},
        "forge": {
            "kind": "gitea",
            "api": "https://forge.example.com/api/v1",
            "repository": "team/fleet",
            "secret": "forge-token",
        },
    },
    "keys before anything is asked": {
        **REPO,
        "controller": {"signingKey": "controller-key"},
        "trust": {"level": "none", "signers": "signers"},
    },
    "a token for the forge that the address tells": {**REPO, "forge": {"secret": "forge-token"}},
    "keys in pull mode": {
        **PULL,
        "apply": {"signingKey": "applier-key"},
        "trust": {"level": "signature", "signers": "signers"},
    },
    "what elastic pools scale": {**REPO, "scaleTargets": [TARGET, GROUP]},
    "what a pool of Karpenter scales": {**REPO, "scaleTargets": [NODEPOOL]},
    "what elastic pools scale in pull mode": {**PULL, "scaleTargets": [GROUP]},
    "drains by NVSentinel": {**REPO, "nvsentinel": True},
    "Kueue's queues": {**REPO, "kueue": True},
    "Kueue's queues in pull mode": {**PULL, "kueue": True, "nvsentinel": True},
    "exported Services": {**REPO, "mcs": True},
    "exported Services in pull mode": {**PULL, "mcs": True},
    "drains by NVSentinel in pull mode": {**PULL, "nvsentinel": True, "scaleTargets": [GROUP]},
    "what elastic pools scale in a cluster that is not driven": {
        **REPO,
        "scaleTargets": [TARGET],
        "controller": {"drivesThisCluster": False},
    },
    "a door that commits": {**REPO, "cluster": "east", "door": {"enabled": True, "via": "commit"}},
}

REFUSED: dict[str, tuple[Json, str]] = {
    "no repository": (BELIEVING, "repositories is empty"),
    "no word on who is believed": (
        {"repositories": ["/a"]},
        "trust.level is empty; write signature, forge or both",
    ),
    "pull mode without a cluster": ({**REPO, "role": "cluster"}, "cluster is empty; role cluster needs"),
    "a door without a cluster": ({**REPO, "door": {"enabled": True}}, "cluster is empty; door needs"),
    "a level without keys of others": (
        {**REPO, "trust": {"level": "forge"}},
        "trust.signers is empty; level forge needs",
    ),
    "a level without a key": (
        {**REPO, "trust": {"level": "signature", "signers": "signers"}},
        "controller.signingKey is empty; level signature needs",
    ),
    "a level without a key in pull mode": (
        {**PULL, "trust": {"level": "signature", "signers": "signers"}},
        "apply.signingKey is empty; level signature needs",
    ),
    "agents that nobody would believe": (
        {
            **REPO,
            "cluster": "east",
            "agents": {"enabled": True},
            "controller": {"signingKey": "k"},
            "trust": {"level": "both", "signers": "signers"},
        },
        "agents.signingKey is empty; level both needs",
    ),
    "a portal that nobody would believe": (
        {
            **REPO,
            "controller": {"signingKey": "k"},
            "portal": {"enabled": True, "replicas": 1},
            "trust": {"level": "signature", "signers": "signers"},
        },
        "portal.signingKey is empty; level signature needs",
    ),
    "a portal of two repositories": (
        {
            **BELIEVING,
            "repositories": ["a=/a", "b=/b"],
            "portal": {"enabled": True, "sessionSecret": "session"},
        },
        "repositories has more than one; portal serves one",
    ),
    "replicas that do not know each other's sessions": (
        {**REPO, "portal": {"enabled": True}},
        "portal.sessionSecret is empty; several replicas need",
    ),
    "agents of two repositories": (
        {**BELIEVING, "repositories": ["a=/a", "b=/b"], "cluster": "east", "agents": {"enabled": True}},
        "repositories has more than one; agents serves one",
    ),
}
"""With the words that the chart and `egs install` both say."""

MISSPELT: dict[str, Json] = {
    "an unknown value": {**REPO, "controler": {}},
    "an unknown value further down": {**REPO, "controller": {"replica": 2}},
    "a number as text": {**REPO, "controller": {"replicas": "2"}},
    "a role that is none": {**REPO, "role": "agent"},
    "a digest that is none": {**REPO, "image": {"digest": "abc"}},
    "a port that is none": {**REPO, "networkPolicies": {"egressPorts": [70000]}},
    "a level that is none": {**REPO, "trust": {"level": "strict"}},
    "a name of a key that leads elsewhere": {**REPO, "trust": {"signers": "s", "openPgp": ["../ada.asc"]}},
    "a name that no cluster has": {**REPO, "cluster": "East Coast"},
}
