"""Endpoints: what a document means as Kubernetes objects, and how traffic moves from version to version."""
