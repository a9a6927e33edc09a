"""Git through the `git` program: mirrors, helper processes, packs."""
