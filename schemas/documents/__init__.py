"""The kinds of documents that people write."""
