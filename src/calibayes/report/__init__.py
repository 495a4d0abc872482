"""One self-contained page that says how far each classifier's confidence can be trusted."""
