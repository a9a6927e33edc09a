"""Slices in a cluster: namespaces, rights, quota, tokens."""
