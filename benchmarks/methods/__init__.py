"""Every method on the same data, from the same two starting points, with the same number of tries on validation data."""
