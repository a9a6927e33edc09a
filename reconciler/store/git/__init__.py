"""Git by the program of that name: mirrors, helper processes, packs."""
