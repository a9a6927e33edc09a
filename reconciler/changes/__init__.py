"""Edits of manifests, for the command line, the API and Kubernetes objects."""
