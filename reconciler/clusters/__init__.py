"""Clusters as the reconciler sees them: observe, hand a node over, take it back."""
