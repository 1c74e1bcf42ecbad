"""Custom resource definitions: what one may say, and the resources that it makes."""
