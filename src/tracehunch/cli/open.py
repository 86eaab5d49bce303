"""``tracehunch open TRACE``: the trace in Perfetto, or the part of it around a finding."""

from __future__ import annotations

import gzip
import os
import threading
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from tracehunch.cli import common
from tracehunch.cli.inputs import refuse_to_overwrite
from tracehunch.cli.options import debug_option
from tracehunch.cli.perfetto_file import perfetto_file, plain_name
from tracehunch.cli.serve_once import Served, serve_once
from tracehunch.errors import TracehunchError

if TYPE_CHECKING:
    from tracehunch.verdict import Finding, Look

_PATIENCE_S: Final = 300


@click.command("open")
@click.argument("trace")
@click.option("--evidence", metavar="FINDING", help="Only the part around this finding, its evidence marked.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="With --evidence: keep the part as FILE (.json or .json.gz).",
)
@click.option("--no-browser", is_flag=True, help="Print the link and wait; open no browser.")
@click.option("--no-open", is_flag=True, help="With --evidence and -o: write the part, and serve nothing.")
@click.option(
    "--timeout",
    type=click.IntRange(min=1),
    default=_PATIENCE_S,
    show_default=True,
    metavar="SECONDS",
    help="Wait so long for the browser.",
)
@debug_option
def open_(
    trace: str,
    *,
    evidence: str | None,
    output: Path | None,
    no_browser: bool,
    no_open: bool,
    timeout: int,
) -> int:
    """Open TRACE in ui.perfetto.dev, which reads it from this machine: nothing is uploaded.

    The trace is served once on 127.0.0.1:9001, the one local port that Perfetto may read from; then the
    command ends. Only that file is served, only to that page. TRACE is a file, a folder (the newest trace
    in it is taken), or - for standard input.

    FINDING is an id, as hidden-copy, or the number of one among several, as hidden-copy:2.
    """
    if evidence is None and (output is not None or no_open):
        raise click.UsageError("-o and --no-open go with --evidence")
    if no_open and output is None:
        raise click.UsageError("--no-open needs -o: there would be nothing to show for it")
    if output is not None and not output.name.lower().endswith((".json", ".json.gz")):
        raise click.UsageError(f"{output}: the part is a trace; name it .json or .json.gz")
    refuse_to_overwrite(output, Path(trace))
    served = perfetto_file(trace) if evidence is None else _part(trace, evidence, output)
    if no_open:
        return common.FINE

    def ready() -> None:
        click.echo(served.link)
        common.note("if the browser asks whether ui.perfetto.dev may reach this device, allow it")
        if not no_browser:
            threading.Thread(target=_browse, args=(served.link,), daemon=True).start()

    if serve_once(served, timeout, ready):
        return common.FINE
    raise TracehunchError(
        f"nobody read the trace within {timeout} seconds",
        "the link was not opened, or the browser was not allowed to reach this device",
        "open it on this machine and allow that; --timeout waits longer",
    )


def _browse(link: str) -> None:
    """Open the link; some browsers return only when they are closed, so this runs beside the server."""
    if not webbrowser.open(link):
        common.note("no browser could be opened; open the link in one on this machine")
        if os.environ.get("SSH_CONNECTION"):
            common.note("over SSH: ssh -L 9001:127.0.0.1:9001 HOST, then open the link where you sit")


def _part(source: str, evidence: str, output: Path | None) -> Served:
    from tracehunch.judge import examine  # noqa: PLC0415  # numpy and msgspec load only when a trace is looked at
    from tracehunch.report.evidence_trace import slice_of  # noqa: PLC0415  # as above

    seen = examine(common.read_trace(source))
    finding = _found(seen, evidence)
    data = slice_of(seen, finding)
    if output is not None:
        common.write_whole(output, gzip.compress(data, mtime=0) if output.suffix.lower() == ".gz" else data)
        common.note(f"wrote {output}")
    return Served(plain_name(finding.id), memoryview(data))


def _found(seen: Look, wanted: str) -> Finding:
    """Return the finding that is meant by its id, or by that and its number."""
    id_, _, number = wanted.partition(":")
    named = [one for one in seen.checked.findings if one.id == id_]
    if not named:
        there = sorted({one.id for one in seen.checked.findings})
        raise common.unknown_name("finding", wanted, there)
    at = int(number) if number.isdecimal() else 0 if ":" in wanted else 1
    if not 1 <= at <= len(named):
        raise TracehunchError(
            f"there is no {wanted}",
            f"the trace has {len(named)} of {id_}",
            f"give {id_}:1 to {id_}:{len(named)}" if len(named) > 1 else f"give {id_}",
        )
    if len(named) > 1 and not number:
        common.note(f"the first of {len(named)}; --evidence {id_}:2 takes the next")
    return named[at - 1]
