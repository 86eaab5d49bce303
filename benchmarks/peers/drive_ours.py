"""tracehunch from Python: `python drive_ours.py load TRACE | checks TRACE`.

What the command line does is timed by running it.
"""

import sys

from stages import Stages


def load(stages: Stages, trace: str) -> None:
    """Read and link a trace."""
    from tracehunch.trace import read  # noqa: PLC0415 - its import is part of what is timed
    from tracehunch.tree import link  # noqa: PLC0415 - see above

    stages.must("load", lambda: link(read(trace)))


def checks(stages: Stages, trace: str) -> None:
    """Read a trace, run all checks and render the report as JSON."""
    from tracehunch import checks as all_checks  # noqa: PLC0415 - see above
    from tracehunch.facts import measure  # noqa: PLC0415 - see above
    from tracehunch.report import json_report  # noqa: PLC0415 - see above
    from tracehunch.trace import read  # noqa: PLC0415 - see above
    from tracehunch.tree import link  # noqa: PLC0415 - see above
    from tracehunch.verdict import Look  # noqa: PLC0415 - see above

    stages.must("import", lambda: None)
    found = stages.must("read", lambda: read(trace))
    tree = stages.must("link", lambda: link(found))
    facts = stages.must("facts", lambda: measure(tree))
    checked = stages.must("all checks", lambda: all_checks.run(facts))
    stages.must("report", lambda: json_report.render(Look(facts, checked)))


def main() -> None:
    """Do one task."""
    task, *paths = sys.argv[1:]
    stages = Stages()
    {"load": load, "checks": checks}[task](stages, *paths)
    stages.tell()


if __name__ == "__main__":
    main()
