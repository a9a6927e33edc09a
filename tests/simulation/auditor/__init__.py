"""The promises of the documents, checked from outside. Nothing here knows how the product decides.

Held by tests/simulation/test_auditor.py: no module here imports the product.
"""
