"""The Common Expression Language: cases of our own, and what cel-go, as kube-apiserver 1.37 has it, answers to them."""
