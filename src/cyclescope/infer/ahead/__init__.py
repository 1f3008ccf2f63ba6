"""What answers tell, thought out while the backend is at work on others."""
