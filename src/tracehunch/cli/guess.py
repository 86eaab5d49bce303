"""``tracehunch guess``: predict ``sdpa`` and ``attention`` calls, or write a trace's hunch.toml."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from tracehunch.cli import common
from tracehunch.cli.failures import did_you_mean
from tracehunch.cli.guess_attention import attention
from tracehunch.cli.guess_sdpa import sdpa
from tracehunch.cli.inputs import refuse_to_overwrite
from tracehunch.cli.options import debug_option
from tracehunch.units import plural


class Guesses(click.Group):
    """The group of what can be guessed; an unknown word is told with what was meant."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the subcommand, or say what was meant; a file gets the option that was forgotten."""
        word = args[0]
        if word not in self.commands and not word.startswith("-"):
            if Path(word).exists():
                raise click.UsageError(f"{word} is a file; did you mean tracehunch guess --from {word}?", ctx)
            there = f"; there are {', '.join(self.commands)}, and --from TRACE"
            raise click.UsageError(f"cannot guess {word!r}{did_you_mean(word, self.commands) or there}", ctx)
        return super().resolve_command(ctx, args)


@click.group(
    "guess", cls=Guesses, invoke_without_command=True, subcommand_metavar="[sdpa | attention] [ARGS]..."
)
@click.option("--from", "source", metavar="TRACE", help="The trace (file, folder or -) to learn from.")
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
@click.pass_context
def guess(
    ctx: click.Context, source: str | None, output: Path | None, times: bool, scopes: tuple[str, ...]
) -> int:
    """Predict what a trace should show, or write the hunch.toml of what one shows.

    'guess sdpa' and 'guess attention' predict calls from their shapes, for a GPU and a PyTorch version.
    'guess --from TRACE' claims what a trace shows and does not change from run to run: exact counts, the SDPA
    backend, data types, tensor cores. Hold later traces against it with 'tracehunch check'; edit it freely.
    """
    if ctx.invoked_subcommand is not None:
        if source is not None or output is not None or times or scopes:
            raise click.UsageError(f"options of --from do not go with 'guess {ctx.invoked_subcommand}'", ctx)
        return common.FINE
    if source is None:
        raise click.MissingParameter(ctx=ctx, param=ctx.command.params[0])
    return _from_trace(source, output, times=times, scopes=scopes)


def _from_trace(source: str, output: Path | None, *, times: bool, scopes: tuple[str, ...]) -> int:
    """Write a baseline."""
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


guess.add_command(sdpa)
guess.add_command(attention)
