"""Where the time of a run went: seconds by folder of tests, and the slowest tests; `--budget` prints it at the end.

What fails is named at once: a run that is ended from outside has told it.
"""

from __future__ import annotations

from collections import defaultdict

import pytest

SLOWEST = 25
DEPTH = 4
"""Parts of a path that make a folder: tests, package, room and its own."""


class Budget:
    """Adds up what the reports of one run say."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._tests: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Set-up, call and teardown of one test, in turn."""
        self._tests[report.nodeid] += report.duration
        if report.failed:
            terminal = self._config.pluginmanager.get_plugin("terminalreporter")
            assert terminal is not None
            terminal.write_line(f"\nFAILED {report.nodeid}\n{report.longreprtext}")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The two tables."""
        folders: dict[str, list[float]] = defaultdict(list)
        for name, took_s in self._tests.items():
            parts = name.partition("::")[0].split("/")[:-1]
            folders["/".join(parts[:DEPTH])].append(took_s)
        terminalreporter.section("seconds by folder, all processes together")
        for folder, all_s in sorted(folders.items(), key=lambda row: -sum(row[1])):
            terminalreporter.write_line(f"{sum(all_s):8.1f} s  {len(all_s):5} tests  {folder}")
        terminalreporter.section(f"the slowest {SLOWEST} tests")
        for name, took_s in sorted(self._tests.items(), key=lambda row: -row[1])[:SLOWEST]:
            terminalreporter.write_line(f"{took_s:8.1f} s  {name}")
