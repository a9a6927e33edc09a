"""From main to the documents in force."""
