"""What crosses the wire before its meaning is known: paths and parameters of requests, media types, YAML, protobuf."""
