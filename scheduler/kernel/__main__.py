"""`python -m scheduler.kernel`: compiles the engine, so that it is on this machine's disk (or in this image)."""

from __future__ import annotations

from scheduler.kernel import warm

if __name__ == "__main__":
    warm()
