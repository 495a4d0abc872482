"""The commands of the command line that have commands of their own."""
