"""Requests as Kubernetes objects."""
