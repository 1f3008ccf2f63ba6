"""Instruction forms, their operands and encodings."""
