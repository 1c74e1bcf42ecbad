"""What reviews ask and what is answered; which documents make a server ask."""
