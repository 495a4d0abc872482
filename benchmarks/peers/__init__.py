"""calibayes beside the libraries that people use for the same, and beside the limit; `make bench-peers` prints the table.

Each peer has a file of its own, with what a user of that library would write.
"""
