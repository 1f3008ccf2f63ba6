"""How far two machines agree, and what explains where they do not."""
