"""Pods of slices and what made them, as a cluster's API gives them."""
