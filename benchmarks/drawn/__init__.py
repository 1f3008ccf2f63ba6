"""Simulated machines of known truth, drawn with fresh seeds or LLVM's: what of them is found out."""
