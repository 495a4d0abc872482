"""The paper's experiments and those beyond it (`shift`), which `calibayes reproduce` runs from a clone of the repository."""
