"""Make it so: read what is wanted, decide, commit the decision, carry it out."""
