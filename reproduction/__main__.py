"""``python -m reproduction`` is ``calibayes reproduce``, from the root of the repository."""

import sys

from calibayes.cli import app

if __name__ == "__main__":
    sys.argv.insert(1, "reproduce")
    app()
