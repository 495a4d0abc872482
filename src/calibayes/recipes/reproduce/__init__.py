"""The paper's experiments on 20 Newsgroups and CIFAR-10."""
