"""What users give, as a program: assembly text, listings, object files, machine code."""
