"""The command: what it is called with, and its sub-commands; no logic."""
