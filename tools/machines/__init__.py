"""The machine models that ship, from the scheduling models of LLVM."""
