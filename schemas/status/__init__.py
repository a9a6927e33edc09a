"""The kinds of documents that machines write."""
