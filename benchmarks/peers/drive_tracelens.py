"""TraceLens: `python drive_tracelens.py look TRACE | diff BEFORE AFTER | ranks FOLDER | import`.

What comes nearest to ours; `ranks` is its report on collectives, the only one it has over all ranks.
"""

import sys
from pathlib import Path

from stages import Stages


def look(stages: Stages, trace: str) -> None:
    """Build the tree, the GPU's timeline and the table of kernel launchers."""
    from TraceLens import TreePerfAnalyzer  # noqa: PLC0415 - its import is part of what is timed

    analyzer = stages.must("load", lambda: TreePerfAnalyzer.from_file(trace))
    stages.run("timeline", analyzer.get_df_gpu_timeline)
    stages.run("launchers", analyzer.get_df_kernel_launchers)


def diff(stages: Stages, before: str, after: str) -> None:
    """Merge two trees and report the difference."""
    from TraceLens import TraceDiff, TreePerfAnalyzer  # noqa: PLC0415 - see above

    first = stages.must("load", lambda: TreePerfAnalyzer.from_file(before))
    second = stages.must("load the other", lambda: TreePerfAnalyzer.from_file(after))
    stages.run("compare", lambda: TraceDiff(first.tree, second.tree).generate_tracediff_report())


def ranks(stages: Stages, folder: str) -> None:
    """Read the collectives of all ranks and summarise them."""
    from TraceLens import NcclAnalyser  # noqa: PLC0415 - see above

    files = sorted(map(str, Path(folder).iterdir()))
    analyser = stages.must("load", lambda: NcclAnalyser(files, len(files)))
    stages.run("collectives", lambda: analyser.build_df_summary_nccl_implicit_sync_cat(agg_metrics=["mean"]))


def main() -> None:
    """Do one task."""
    task, *paths = sys.argv[1:]
    stages = Stages()
    if task == "import":
        stages.must("import", lambda: __import__("TraceLens"))
    else:
        {"look": look, "diff": diff, "ranks": ranks}[task](stages, *paths)
    stages.tell()


if __name__ == "__main__":
    main()
