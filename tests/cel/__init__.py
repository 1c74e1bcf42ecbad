"""The Common Expression Language: cases of our own, and what cel-go, as kube-apiserver has it, answers to them."""
