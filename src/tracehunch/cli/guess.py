"""``tracehunch guess --from TRACE``: write the hunch.toml of what a trace shows."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from tracehunch.cli import common
from tracehunch.cli.inputs import refuse_to_overwrite
from tracehunch.cli.options import debug_option
from tracehunch.units import plural


@click.command("guess")
@click.option(
    "--from", "source", required=True, metavar="TRACE", help="The trace (file, folder or -) to learn from."
)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write to FILE."
)
@click.option(
    "--times", is_flag=True, help="Claim GPU times, too, as ranges; only checked on the same hardware."
)
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    metavar="NAME",
    help="Claim only of this scope (or op); repeat for more.",
)
@debug_option
def guess(source: str, output: Path | None, times: bool, scopes: tuple[str, ...]) -> int:
    """Write the hunch.toml of what a trace shows, as a baseline.

    It claims what does not change from run to run: exact counts, the SDPA backend, data types, tensor cores.
    Hold later traces against it with 'tracehunch check'; edit it freely.
    """
    from tracehunch import api  # noqa: PLC0415  # numpy and msgspec load only when a trace is looked at
    from tracehunch.guess.write import write_hunch  # noqa: PLC0415  # as above

    refuse_to_overwrite(output, Path(source))
    trace = common.read_trace(source)
    made = api.guess_from(trace, times=times, scopes=scopes)
    label = trace.label
    comments = [
        f"What {label} shows. Hold a trace against it:",
        f"  tracehunch check {output or 'hunch.toml'} TRACE",
    ]
    common.emit(write_hunch(made, comments, datetime.now(UTC)), output)
    scoped = len({claim.scope for claim in made.claims})
    common.note(
        f"{plural(len(made.claims), 'claim')} about {plural(scoped, 'scope')}, sealed {made.seal[:12]}"
    )
    if damage := [notice.code for notice in trace.notices if notice.lossy]:
        common.note(f"{label} is damaged ({', '.join(damage)}), so counts may be too low")
    if times and not any(claim.unit == "us" for claim in made.claims):
        common.note("no times were claimed: the trace names no GPU that they would be of")
    return common.FINE
