"""Following values through kernels: see docs/method/values.md."""
