"""From committed facts to the clusters."""
