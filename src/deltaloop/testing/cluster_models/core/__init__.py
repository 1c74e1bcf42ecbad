"""What the models of a cluster decide: pure functions from what there is to what is to be done next."""
