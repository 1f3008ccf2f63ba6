"""Assembly text to machine code by the assembler that is there, within limits."""
