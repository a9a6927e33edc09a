"""`make screenshots`: every page of the demo's portal in light, dark and on a phone, and the comment of a pull request.

The demo's week is played for a hundred minutes of simulated time, so that the pictures are the same each time but for
generated names. `make pictures` takes only those that the documents show, into docs/images.
"""

from __future__ import annotations

import contextlib
import io
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from markdown_it import MarkdownIt
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from demo.api import Served, served
from demo.story import DANA, LIVE, request
from demo.system import System
from reconciler.cli.answers.check_pr import Refs, show_check
from reconciler.clock import ManualClock
from reconciler.settings import Settings
from reconciler.store.store_port import Draft
from schemas.reading.units import format_instant

BEGIN = datetime(2026, 3, 2, 8, tzinfo=UTC)
"""A Monday."""
MINUTES = 100
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light", "viewport": {"width": 1440, "height": 900}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1440, "height": 900}},
    "phone": {"color_scheme": "light", "viewport": {"width": 375, "height": 812}},
}
COLOURS = 256
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
"""Pictures of pages that the documents show, beside that of the comment."""
COMMENT = "comment"
BRANCH = "requests/nlp-hotfix"
ASKED = {"nodes": 2, "gpusPerNode": 8, "gpuShape": "H100-80GB", "duration": "0d4h0m", "priority": 250}
"""What the pull request of the picture asks for: more urgent than what waits."""
PAPER = """<!doctype html><meta charset="utf-8"><style>
  body {font: 14px/1.5 system-ui, "Noto Sans", sans-serif; color: #1f2328; margin: 16px; width: 1080px}
  main {border: 1px solid #d1d9e0; border-radius: 6px}
  header {background: #f6f8fa; border-bottom: 1px solid #d1d9e0; padding: 8px 16px; border-radius: 6px 6px 0 0}
  article {padding: 0 16px 8px} h3 {margin: 16px 0} table {border-collapse: collapse; margin-bottom: 16px}
  th, td {border: 1px solid #d1d9e0; padding: 6px 13px; text-align: left} tr:nth-child(2n) {background: #f6f8fa}
  code {background: #eff1f3; border-radius: 6px; padding: .2em .4em; font-size: 85%} sub {color: #59636e}
</style><main><header><b>egs</b> commented</header><article>"""
"""A page that looks like a forge's, around the comment."""


def main(folder: Path, *, is_all: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as state:
        system = System(Path(state), _settings(Path(state)))
        clock = played(system)
        said = comment(system, clock.now())
        with served(system, clock, 0) as door, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
            comment_picture(browser, said, folder / f"{COMMENT}.png")
            for look in LOOKS:
                _pictures(browser, (door, clock), look, folder, is_all=is_all)
        system.close()
    for name in (*SHOWN, COMMENT):
        small(folder / f"{name}.png", IMAGES / f"{name}.png")


def comment(system: System, now: datetime) -> str:
    """What the check says about a pull request of Dana's, in Markdown."""
    store = system.people
    tip = store.fetch(["main"])["main"]
    draft = Draft(
        dict(request("nlp", "hotfix", **ASKED)), "Create nlp/hotfix", DANA, now, base=tip, parent=tip
    )
    store.push(BRANCH, store.write(draft), None)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        author = f"{DANA.name} <{DANA.email}>"
        show_check(str(system.repository), format_instant(now), Refs(head=BRANCH), author, "markdown")
    return said.getvalue()


def comment_picture(browser: Browser, text: str, file: Path) -> None:
    """The comment as a forge renders it."""
    page = browser.new_page(viewport={"width": 1112, "height": 600})
    shown = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    page.set_content(
        PAPER + shown.replace("✅", '<span style="color: #1a7f37">✔</span>')
    )  # Debian has no emoji
    file.write_bytes(page.locator("main").screenshot())
    page.close()


def small(taken: Path, kept: Path) -> None:
    """Few colours make a picture of a page a third of its size."""
    with Image.open(taken) as image:
        image.convert("RGB").quantize(COLOURS).save(kept, optimize=True)


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


def _pictures(
    browser: Browser, at: tuple[Served, ManualClock], look: str, folder: Path, *, is_all: bool
) -> None:
    door, clock = at
    context = browser.new_context(**LOOKS[look])
    page = context.new_page()
    page.goto(door.link)
    page.wait_for_selector(".side", state="attached")
    menu = page.eval_on_selector_all(".side a", "links => links.map(link => new URL(link.href).pathname)")
    for path in (*menu, *FURTHER):
        name = f"{_name(path)}-{look}"
        if not is_all and name not in SHOWN:
            continue
        # While the clock stands still no rate limit is filled again, and the last pages would be refusals.
        clock.set(clock.now() + timedelta(seconds=1))
        _picture(page, door.url + path, folder / f"{name}.png")
    context.close()


def _picture(page: Page, address: str, file: Path) -> None:
    page.goto(address)
    page.wait_for_timeout(SETTLED_MS)
    page.screenshot(path=str(file))


def _name(path: str) -> str:
    return path.partition("?")[0].strip("/").replace("/", "-") or "home"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]), is_all=True)
    else:
        with TemporaryDirectory() as draft:
            main(Path(draft), is_all=False)
