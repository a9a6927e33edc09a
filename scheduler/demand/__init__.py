"""How many nodes a load needs, and by when to file for them."""
