"""Without Lightning, importing the door says how to get it."""

from __future__ import annotations

import subprocess
import sys


def test_what_is_missing_is_named() -> None:
    code = "import sys; sys.modules['lightning'] = None; import calibayes; print('core'); import calibayes.lightning"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "core\n"
    assert done.stderr.splitlines()[-1].startswith("calibayes.errors.MissingExtraError: calibayes.lightning needs a package")
    assert done.stderr.endswith(
        "Install it with: pip install 'calibayes[lightning]' (in a clone: pip install -c constraints.txt -e '.[lightning]')\n"
    )
