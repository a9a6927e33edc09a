"""Slices in a cluster: namespaces, permissions, quota, tokens."""
