"""One program for each client that is measured; all of them do the same work and speak ``peer.py``'s protocol."""
