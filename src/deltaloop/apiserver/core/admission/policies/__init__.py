"""Admission policies with CEL expressions."""
