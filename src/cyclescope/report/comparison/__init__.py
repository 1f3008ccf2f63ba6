"""How machines and experiments compare: as text, JSON, CSV, pages, and as texts for compiler developers."""
