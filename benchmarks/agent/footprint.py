"""Memory and processor time of one agent with eight GPUs that reads every ten seconds.

The agent runs as on a node, as a process of its own, over a driver library in C that answers at once: what is left is
the agent's own cost. It reads every second here, and the time of one reading counts against ten seconds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SOURCE = Path(__file__).with_name("fake_nvml.c")
READINGS = 120
INTERVAL_S = 10


def main() -> None:
    """Print megabytes and the share of a core."""
    with tempfile.TemporaryDirectory() as folder:
        memory_mb, core_percent = measured(Path(folder))
    print(f"agent, 8 GPUs, every {INTERVAL_S} s: {memory_mb:.1f} MB resident, {core_percent:.3f} % of a core")


def measured(folder: Path) -> tuple[float, float]:
    """Resident memory and share of a core after some readings."""
    library = folder / "libnvidia-ml.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-w", "-o", library, SOURCE], check=True)
    repository = folder / "fleet.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", repository], check=True)
    command = [
        *(sys.executable, "-c", "from agent.main import main; main()", "run", "--repo", str(repository)),
        *("--cluster", "east", "--node", "h100-1", "--interval", "1", "--state", str(folder / "state")),
    ]
    environment = os.environ | {"LD_LIBRARY_PATH": str(folder)}
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as agent:
        time.sleep(10)  # started, reported once
        began = cpu_s(agent.pid)
        time.sleep(READINGS)
        used = cpu_s(agent.pid) - began
        memory = resident_mb(agent.pid)
        agent.terminate()
    return memory, 100 * used / READINGS / INTERVAL_S


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    main()
