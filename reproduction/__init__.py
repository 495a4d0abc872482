"""The paper's experiments on 20 Newsgroups and CIFAR-10, which `calibayes reproduce` runs from a clone of the repository."""
