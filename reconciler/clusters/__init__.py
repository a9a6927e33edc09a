"""Clusters as the reconciler sees them: observe, assign a node, release it."""
