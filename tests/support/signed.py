"""A world in which controllers and agents sign, and strangers who can push to every branch."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from reconciler.loop import Reconciler
from reconciler.model.evidence import HEALTH
from reconciler.ports import Ports
from reconciler.store.document_cache import DocumentCache
from reconciler.store.memory_store import MemoryStore
from reconciler.store.store_port import Draft, Outcome, Person, Sign
from reconciler.store.trailers import Stamp, message
from reconciler.trust.machines import Machines, signing
from schemas.reading.reader import READER_VERSION
from schemas.status.node_status import AgentReport, NodeMetadata
from tests.support.machinekeys import key, line, machines
from tests.support.world import World

EVE = Person("Eve", "eve@example.com")
STATUS = "egs/status"
HIGHER = Stamp("controller-1", 99, 1, "1" * 40)
"""What a forger would like to be."""


class SignedWorld(World):
    """A `World` whose trust folder names a controller's key and one for each agent of east."""

    lines: tuple[str, ...] = (line("controller"), line("agent:east/*", "agents"))
    key = "controller"

    def __init__(self, files: Mapping[str, str | None] | None = None, **settings: object) -> None:
        super().__init__(files, adopt=False, **settings)  # type: ignore[arg-type]

    def machines(self) -> Machines:
        """Whose word counts."""
        return machines(*self.lines, level="none")

    def start(self, may_lead: Callable[[], bool] | None = None) -> Reconciler:
        """A new controller process, which signs."""
        self._count += 1
        return Reconciler(
            Ports(
                MemoryStore(self.remote, signing(key(self.key))),
                DocumentCache(None, READER_VERSION),
                self._open,
                may_lead=may_lead,
                machines=self.machines(),
            ),
            self.settings,
            f"controller-{self._count}",
            adopt=self.adopt,
        )

    def report(self, node: str, healthy: bool, cluster_name: str = "east", **more: object) -> None:
        """Its agent says how its node is, and signs."""
        self.reported(node, healthy, by="agents", cluster_name=cluster_name, **more)

    def reported(
        self,
        node: str,
        healthy: bool,
        by: str | None,
        *,
        branch: str | None = None,
        namespace: str = HEALTH,
        cluster_name: str = "east",
        **more: object,
    ) -> None:
        """A report on that branch, mostly the node's own, signed with the key of that name or not at all."""
        from reconciler.status.yaml_rows import document as rendered

        fields: dict[str, object] = {"at": self.now, "metadata": NodeMetadata(name=node), **more}
        document = AgentReport(cluster=cluster_name, node=node, healthy=healthy, **fields)  # type: ignore[arg-type]
        text = rendered(document)
        signature = None if by is None else key(by).sign(namespace, text)
        files = {"report.yaml": text.decode(), "report.yaml.sig": signature}
        self.commit(files, branch or f"egs/agents/east/{node}")

    def push(
        self,
        changes: Mapping[str, bytes | None],
        sign: Sign | None = None,
        *,
        stamp: Stamp | None = HIGHER,
        root: bool = False,
        branch: str = STATUS,
    ) -> str:
        """Eve pushes onto a branch, or something else in its place."""
        store = MemoryStore(self.remote, sign)
        tip = store.fetch([branch]).get(branch)
        text = "by hand" if stamp is None else message("Forged", stamp)
        parent = None if root else tip
        oid = store.write(Draft(changes, text, EVE, self.now, parent, parent))
        assert store.push(branch, oid, tip) is Outcome.COMMITTED
        return oid
