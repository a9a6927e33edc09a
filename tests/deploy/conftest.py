"""Helm for every test here."""

from tests.deploy.helm import helm

__all__ = ["helm"]
