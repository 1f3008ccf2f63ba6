"""Reading what users give: assembly text, listings, object files, machine code."""
