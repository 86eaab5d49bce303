"""HolisticTraceAnalysis: `python drive_hta.py look TRACE | diff BEFORE AFTER | ranks FOLDER | import`.

What comes nearest to ours: all steps are analysed, nothing is drawn.
"""

import sys

from stages import Stages


def look(stages: Stages, trace: str) -> None:
    """Read a trace and break its time down."""
    from hta.trace_analysis import TraceAnalysis  # noqa: PLC0415 - its import is part of what is timed

    given = {"trace_files": {0: trace}, "trace_dir": "", "include_last_profiler_step": True}
    _broken_down(stages, stages.must("load", lambda: TraceAnalysis(**given)))


def ranks(stages: Stages, folder: str) -> None:
    """Read all ranks of a folder, break their time down and look for stragglers."""
    from hta.trace_analysis import TraceAnalysis  # noqa: PLC0415 - see above

    given = {"trace_dir": folder, "include_last_profiler_step": True}
    analysis = stages.must("load", lambda: TraceAnalysis(**given))
    _broken_down(stages, analysis)
    stages.run("stragglers", analysis.get_potential_stragglers)


def _broken_down(stages: Stages, analysis: object) -> None:
    stages.run("temporal breakdown", lambda: analysis.get_temporal_breakdown(visualize=False))
    stages.run("overlap", lambda: analysis.get_comm_comp_overlap(visualize=False))


def diff(stages: Stages, before: str, after: str) -> None:
    """Compare the operators and kernels of all steps of two traces."""
    from hta.common.trace import Trace  # noqa: PLC0415 - see above
    from hta.trace_diff import LabeledTrace, TraceDiff  # noqa: PLC0415 - see above

    def read(label: str, path: str) -> LabeledTrace:
        return LabeledTrace(label, t=Trace(trace_files={0: path}, trace_dir=""))

    control = stages.must("load", lambda: read("before", before))
    test = stages.must("load the other", lambda: read("after", after))
    stages.run(
        "compare",
        lambda: TraceDiff.compare_traces(
            control, test, control_iteration=control.iterations(), test_iteration=test.iterations()
        ),
    )


def main() -> None:
    """Do one task."""
    task, *paths = sys.argv[1:]
    stages = Stages()
    if task == "import":
        stages.must("import", lambda: __import__("hta.trace_analysis"))
    else:
        {"look": look, "diff": diff, "ranks": ranks}[task](stages, *paths)
    stages.tell()


if __name__ == "__main__":
    main()
