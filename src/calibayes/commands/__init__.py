"""The commands of the command line that are too long for its own file."""
