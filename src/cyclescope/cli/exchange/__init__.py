"""Commands that exchange machines with other tools, compare and show them; one module per command."""
