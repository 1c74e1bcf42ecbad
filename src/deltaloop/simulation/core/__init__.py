"""What a simulation decides, without a loop, a clock or chance of its own."""
