"""What `import calibayes.acting` loads."""

from __future__ import annotations

import subprocess
import sys


def test_the_package_is_loaded_when_first_used_and_brings_nothing_else() -> None:
    code = (
        "import sys, calibayes; assert 'calibayes.acting' not in sys.modules;"
        "calibayes.acting.conformal_sets; assert 'acting' in dir(calibayes);"
        "print(*sorted({name.split('.')[0] for name in sys.modules} & {'scipy', 'sklearn', 'pandas', 'matplotlib'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []
