"""Objects of built-in kinds, and mutations of them that the OpenAPI types suggest."""
