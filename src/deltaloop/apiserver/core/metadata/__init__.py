"""What every object has, whatever its kind: its identity and metadata, their types, and the rules for them."""
