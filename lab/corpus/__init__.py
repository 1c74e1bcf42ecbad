"""What others wrote, sent to the embedded and to the real server: CRDs, their objects, and what is wrong with them."""
