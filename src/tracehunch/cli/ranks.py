"""``tracehunch ranks PATH...``: all ranks of a job in one report."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from tracehunch.cli import common
from tracehunch.cli.inputs import refuse_file_for_github, refuse_to_overwrite
from tracehunch.cli.options import FORMATS, SIZE, debug_option, gate_options
from tracehunch.cli.progress import reading
from tracehunch.errors import TracehunchError
from tracehunch.units import join, plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.ranks.model import Ranks

_FORMATS: Final = {**FORMATS, "parquet": (".parquet",)}


@click.command("ranks")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--engine",
    type=click.Choice(("local", "dask")),
    help="Processes of this machine, or a Dask cluster.  [default: local; dask with --scheduler]",
)
@click.option("--scheduler", metavar="ADDRESS", help="The Dask scheduler to use, as tcp://HOST:8786.")
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    metavar="N",
    help="Processes here.  [default: one a processor, fewer where memory is short]",
)
@click.option(
    "--max-memory",
    type=SIZE,
    metavar="SIZE",
    help="What all workers here may take together, such as 8GB.  [default: most of what is free]",
)
@click.option("--format", "output_format", type=click.Choice(tuple(FORMATS)), help="Default: terminal.")
@click.option(
    "-o",
    "--output",
    "outputs",
    type=click.Path(dir_okay=False, path_type=Path),
    multiple=True,
    metavar="FILE",
    help="Write to FILE; its extension (.txt .json .md .html .parquet) picks the format. May be repeated.",
)
@click.option(
    "--all", "all_ranks", is_flag=True, help="Show every rank, collective and finding, not the first few."
)
@gate_options("never")
@debug_option
def ranks(
    paths: tuple[str, ...],
    *,
    engine: str | None,
    scheduler: str | None,
    workers: int | None,
    max_memory: int | None,
    output_format: str | None,
    outputs: tuple[Path, ...],
    all_ranks: bool,
    fail_on: str,
    strict: bool,
) -> int:
    """Say who waits for whom in a job of many ranks, and which rank is unlike the others.

    PATH is a trace, a folder (read whole, with what is below it), a pattern in quotes, or a URL of one of
    these that fsspec knows: s3://, gs://, hf://, https:// ... Give what belongs to one job: a file a rank, or
    several where the profiler's schedule has cycles. Ranks are told by the files, else by their names.

    What cannot be read is said, and the rest goes on.
    """
    if scheduler is not None and engine == "local":
        raise click.UsageError("--scheduler is of --engine dask")
    chosen = _outputs(output_format, outputs, paths)
    picked_engine = engine or ("dask" if scheduler is not None else "local")
    together = _together(paths, picked_engine, workers, scheduler, max_memory)
    paths = common.shown_paths(paths)
    failures = []
    for picked, output in chosen:
        try:
            if picked == "github":
                common.emit_github(*_for_github(together, paths))
            else:
                common.emit(_rendered(together, picked, output, paths, all_ranks=all_ranks), output)
        except TracehunchError as failure:  # the others are written: reading took its time
            failures.append(failure)
    if failures:
        raise failures[0]
    if outputs and together.unread:
        common.note(
            f"{plural(len(together.unread), 'file')} could not be read; the report says which and why"
        )
    code, why = _code(together, fail_on, strict=strict)
    if code != common.FINE:
        common.note(f"exit {code}: {why}")
    return code


def _outputs(
    output_format: str | None, outputs: Sequence[Path], paths: Sequence[str]
) -> list[tuple[str, Path | None]]:
    """Return each format with its file; what cannot work is said before hours of reading."""
    chosen = [(common.pick_format(output_format, output, _FORMATS), output) for output in outputs or (None,)]
    for picked, output in chosen:
        refuse_file_for_github(picked, output)
        if output is None:
            continue
        if output.suffix.lower() == ".parquet" and output_format is not None:
            raise click.UsageError(f"{output} is Parquet by its name; leave --format out")
        if picked == "parquet":
            from tracehunch.report import ranks_parquet  # noqa: PLC0415  # loaded only where it is needed

            ranks_parquet.require()
        if not output.parent.is_dir():
            raise TracehunchError(f"cannot write {output}", "there is no such folder", "make it first")
        if not os.access(output.parent, os.W_OK | os.X_OK):
            raise TracehunchError(
                f"cannot write {output}", "permission denied", "choose another place with -o"
            )
        if output.exists():
            matches = [Path(match) for path in paths for match in glob.glob(path, recursive=True)]  # noqa: PTH207  # patterns may be absolute
            refuse_to_overwrite(output, *map(Path, paths), *matches)
    return chosen


def _together(
    paths: Sequence[str], engine: str, workers: int | None, scheduler: str | None, max_memory: int | None
) -> Ranks:
    from tracehunch.api.many import ranks as all_ranks  # noqa: PLC0415  # numpy and msgspec load with it

    with reading(f"ranks of {common.shown_paths(paths)[0]}") as progress:
        return all_ranks(
            paths,
            engine="dask" if engine == "dask" else "local",
            workers=workers,
            scheduler=scheduler,
            max_memory=max_memory,
            progress=progress,
            tell=common.note,
        )


def _for_github(together: Ranks, paths: Sequence[str]) -> tuple[str, str]:
    """Return the workflow commands, and the report for the step's summary."""
    from tracehunch.report import ranks_github, ranks_markdown  # noqa: PLC0415  # loaded only where it is needed

    return ranks_github.render(together, sources=paths), ranks_markdown.render(together, sources=paths)


def _rendered(
    together: Ranks, picked: str, output: Path | None, paths: Sequence[str], *, all_ranks: bool
) -> str | bytes:
    """Render in the format picked; a renderer is imported only when it is needed."""
    if picked == "json":
        from tracehunch.report import ranks_json  # noqa: PLC0415  # as above

        return ranks_json.render(together)
    if picked == "parquet":
        from tracehunch.report import ranks_parquet  # noqa: PLC0415  # as above

        return ranks_parquet.render(together)
    if picked == "html":
        from tracehunch.report.html import ranks_page  # noqa: PLC0415  # as above

        return ranks_page.render(together, sources=paths)
    if picked == "markdown":
        from tracehunch.report import ranks_markdown  # noqa: PLC0415  # as above

        return ranks_markdown.render(together, sources=paths, all_ranks=all_ranks)
    from tracehunch.report import ranks_text  # noqa: PLC0415  # as above

    return ranks_text.render(together, view=common.view(output), sources=paths, all_ranks=all_ranks)


def _code(together: Ranks, fail_on: str, *, strict: bool) -> tuple[int, str]:
    """Return the exit code and why: what was lost first, since what it hides may be worse."""
    from tracehunch.verdict import SEVERITIES  # noqa: PLC0415  # as above

    lossy = sorted({notice.code for notice in together.notices if notice.lossy})
    lost = [plural(len(together.unread), "file") + " could not be read"] if together.unread else []
    lost += [f"{plural(len(together.missing), 'rank')} missing"] if together.missing else []
    if strict and (lost or lossy):
        return common.LOST, f"{join([*lost, *lossy])} (--strict)"
    if fail_on == "never":
        return common.FINE, ""
    level = SEVERITIES.index
    failing = [one for one in together.findings if level(one.severity) >= level(fail_on)]
    if not failing:
        return common.FINE, ""
    worst = max(failing, key=lambda one: level(one.severity))
    more = f", and {len(failing) - 1} more" if len(failing) > 1 else ""
    return common.FOUND, f"{worst.id} in {worst.scope}{more} (--fail-on {fail_on})"
