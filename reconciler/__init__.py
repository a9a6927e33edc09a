"""Reconciles: reads what is wanted, decides, commits the decision, carries it out."""
