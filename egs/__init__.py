"""What people type: the `egs` command."""
