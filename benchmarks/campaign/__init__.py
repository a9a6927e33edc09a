"""Everything at once, and an auditor that knows only the documentation."""
