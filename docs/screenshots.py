"""`make screenshots`: every page of the demo's portal in light, dark and on a phone, into a folder.

The demo's week is played for a hundred minutes of simulated time, so that the pictures are the same each time but for
generated names. Those that the documents show go to docs/images too.
"""

from __future__ import annotations

import shutil
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from demo.api import Served, served
from demo.story import LIVE
from demo.system import System
from reconciler.clock import ManualClock
from reconciler.settings import Settings

BEGIN = datetime(2026, 3, 2, 8, tzinfo=UTC)
"""A Monday."""
MINUTES = 100
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light", "viewport": {"width": 1440, "height": 900}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1440, "height": 900}},
    "phone": {"color_scheme": "light", "viewport": {"width": 375, "height": 812}},
}
SETTLED_MS = 1500
"""Fragments and charts are there then."""
FURTHER = (
    "/requests/new?nodes=2&gpus=8&shape=H100-80GB&duration=6h",
    "/requests/nlp/llama-finetune",
    "/requests/vision/lane-ablation",
    "/workspaces/vision",
    "/workloads/gpus",
    "/admin/clusters/east",
    "/admin/nodes/east/h100-3",
    "/palette?q=8+H100+for+2h",
)
"""Pages that no menu leads to."""
IMAGES = Path(__file__).parent / "images"
SHOWN = (
    "home-light", "calendar-light", "requests-new-light", "requests-vision-lane-ablation-light",
    "workloads-gpus-light", "admin-queue-light", "admin-health-dark",
)  # fmt: skip
"""Pictures that the documents show."""


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as state:
        system = System(Path(state), _settings(Path(state)))
        clock = played(system)
        with served(system, clock, 0) as door, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
            for look in LOOKS:
                _pictures(browser, (door, clock), look, folder)
        system.close()
    for name in SHOWN:
        shutil.copyfile(folder / f"{name}.png", IMAGES / f"{name}.png")


def _settings(state: Path) -> Settings:
    return Settings(repo=str(state / "fleet.git"), state=state, pushes_per_minute=None)


def played(system: System) -> ManualClock:
    """The demo's week, a hundred minutes old."""
    system.create(BEGIN)
    clock, controller = ManualClock(BEGIN), system.start_controller()
    controller.cycle(BEGIN)
    for act in LIVE:
        act(system, BEGIN)
    for minute in range(1, MINUTES + 1):
        clock.set(BEGIN + timedelta(minutes=minute))
        system.watch_nodes(clock.now())
        controller.cycle(clock.now())
    return clock


def _pictures(browser: Browser, at: tuple[Served, ManualClock], look: str, folder: Path) -> None:
    door, clock = at
    context = browser.new_context(**LOOKS[look])
    page = context.new_page()
    page.goto(door.link)
    page.wait_for_selector(".side", state="attached")
    menu = page.eval_on_selector_all(".side a", "links => links.map(link => new URL(link.href).pathname)")
    for path in (*menu, *FURTHER):
        # While the clock stands still no rate limit is filled again, and the last pages would be refusals.
        clock.set(clock.now() + timedelta(seconds=1))
        _picture(page, door.url + path, folder / f"{_name(path)}-{look}.png")
    context.close()


def _picture(page: Page, address: str, file: Path) -> None:
    page.goto(address)
    page.wait_for_timeout(SETTLED_MS)
    page.screenshot(path=str(file))


def _name(path: str) -> str:
    return path.partition("?")[0].strip("/").replace("/", "-") or "home"


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "screenshots"))
