"""`python -m scheduler.kernel`: compiles the engine into the cache of this machine or image."""

from __future__ import annotations

from scheduler.kernel import warm

if __name__ == "__main__":
    warm()
