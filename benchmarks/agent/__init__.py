"""What the agent costs, and how right its judge is."""
