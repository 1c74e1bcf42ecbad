"""What the peers are measured against: objects, and a server that sends them faster than any client can take them."""
