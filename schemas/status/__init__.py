"""The kinds that machines write back."""
