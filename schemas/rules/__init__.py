"""The rules for documents, each alone and all together."""
