"""Parsing of requests: paths, parameters, media types, bodies, YAML and protobuf."""
