"""Programs that show how deltaloop is used; each also shows that it worked."""
