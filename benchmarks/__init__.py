"""Speed and memory, measured as ratios side by side in one run; `make bench` prints the table."""
