"""What the checks load before any of them runs."""

import subprocess
import sys


def test_the_models_of_time_load_only_with_a_finding_that_needs_them() -> None:
    code = "import sys, tracehunch.checks; print(*(name for name in sys.modules if '.predict.' in name))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    loaded = done.stdout.split()
    assert "tracehunch.predict.traced" in loaded
    assert not [
        name for name in loaded if name.startswith(("tracehunch.predict.roofline", "tracehunch.predict.ops"))
    ]
