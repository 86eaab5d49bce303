"""torch_tb_profiler, the TensorBoard plugin: `python drive_tb.py look TRACE | import`.

Its parse reads, links and analyses in one; its pages come after. It compares runs only in the browser.
"""

import sys
import tempfile

from stages import Stages


def look(stages: Stages, trace: str) -> None:
    """Parse a trace and make what the plugin's pages show."""
    from torch_tb_profiler.profiler.data import RunProfileData  # noqa: PLC0415 - its import is timed too
    from torch_tb_profiler.profiler.run_generator import RunGenerator  # noqa: PLC0415 - see above

    with tempfile.TemporaryDirectory() as cache:
        data = stages.must("load", lambda: RunProfileData.parse("worker", None, trace, cache))
        stages.run("pages", lambda: RunGenerator("worker", None, data).generate_run_profile())


def main() -> None:
    """Do one task."""
    task, *paths = sys.argv[1:]
    stages = Stages()
    if task == "import":
        stages.must("import", lambda: __import__("torch_tb_profiler.profiler.data"))
    else:
        {"look": look}[task](stages, *paths)
    stages.tell()


if __name__ == "__main__":
    main()
