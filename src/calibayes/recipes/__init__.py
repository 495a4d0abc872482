"""Experiments: one training for sweeps, the choice of weights, the comparison of methods, and the demo."""
