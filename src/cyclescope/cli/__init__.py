"""The command; one module per sub-command, no logic."""
