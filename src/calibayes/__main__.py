"""``python -m calibayes`` is the command line."""

from calibayes.cli import app

if __name__ == "__main__":
    app(prog_name="calibayes")
