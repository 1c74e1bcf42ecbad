"""What single built-in kinds do beyond what all kinds have in common."""
