"""How far two machines agree, and what explains their differences."""
