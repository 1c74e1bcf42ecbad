"""Rules in CRDs (``x-kubernetes-validations``): compile, validate and evaluate them."""
