"""Experiments beyond the paper: every method on data unlike those it has learnt, and beside the judgement of people."""
