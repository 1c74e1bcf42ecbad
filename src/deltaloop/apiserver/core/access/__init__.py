"""Who may do what: roles, reviews, tokens of service accounts, and the record of it."""
