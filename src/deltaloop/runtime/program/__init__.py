"""``dl.run``: controllers and webhooks as one program, from the connection to the end of the process."""
