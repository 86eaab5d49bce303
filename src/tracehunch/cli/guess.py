"""``tracehunch guess``: predict attention calls, explain those of a trace, or write a trace's hunch.toml."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click

from tracehunch.cli import common
from tracehunch.cli.failures import did_you_mean
from tracehunch.cli.guess_attention import attention
from tracehunch.cli.guess_program import program
from tracehunch.cli.guess_sdpa import sdpa
from tracehunch.cli.guess_why import why
from tracehunch.cli.inputs import refuse_to_overwrite
from tracehunch.cli.options import TEXT_FORMATS, debug_option
from tracehunch.units import plural

_OF_FROM: Final = {"times": "--times", "scopes": "--scope"}
_OF_WHY: Final = {
    "output_format": "--format",
    "torch_version": "--torch",
    "cudnn": "--cudnn",
    "gpu": "--gpu",
}


class Guesses(click.Group):
    """The group of what can be guessed; an unknown word is told with what was meant."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the subcommand, or say what was meant; a file gets the option that was forgotten."""
        word = args[0]
        if _names_a_function(word):
            return word, program, args  # its help is that of 'tracehunch guess module:function --help'
        if word not in self.commands and not word.startswith("-"):
            if Path(word).exists():
                if word.endswith(".py"):
                    raise click.UsageError(
                        f"{word} is a program; name what to run: tracehunch guess {word}:FUNCTION --gpu h200",
                        ctx,
                    )
                raise click.UsageError(f"{word} is a file; did you mean tracehunch guess --from {word}?", ctx)
            there = f"; there are {', '.join(self.commands)}, --from TRACE and --why TRACE"
            raise click.UsageError(f"cannot guess {word!r}{did_you_mean(word, self.commands) or there}", ctx)
        return super().resolve_command(ctx, args)


def _names_a_function(word: str) -> bool:
    """Whether a word is module:function or file.py:function; a file of that name comes first."""
    before, colon, after = word.rpartition(":")
    return bool(colon and before) and after.replace(".", "").isidentifier() and not Path(word).exists()


@click.group(
    "guess",
    cls=Guesses,
    invoke_without_command=True,
    subcommand_metavar="[MODULE:FUNCTION | sdpa | attention] [ARGS]...",
)
@click.option("--from", "source", metavar="TRACE", help="The trace (file, folder or -) to learn from.")
@click.option("--why", "asked", metavar="TRACE", help="The trace whose SDPA calls to explain.")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write to FILE."
)
@click.option(
    "--times",
    is_flag=True,
    help="With --from: claim GPU times, too, as ranges; only checked on the same hardware.",
)
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    metavar="NAME",
    help="With --from: claim only of this scope (or op); repeat for more.",
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(tuple(TEXT_FORMATS)),
    help="With --why.  [default: by FILE's extension, else terminal]",
)
@click.option(
    "--torch", "torch_version", default="", metavar="VERSION", help="With --why: PyTorch, as 2.11.0+cu130."
)
@click.option("--cudnn", type=int, metavar="N", help="With --why: cuDNN, as 91900.")
@click.option("--gpu", default="", metavar="NAME", help="With --why: the GPU, as h200.")
@debug_option
@click.pass_context
def guess(
    ctx: click.Context, /, *, source: str | None, asked: str | None, output: Path | None, **given: Any
) -> int:
    """Predict what a trace should show, explain its attention, or write the hunch.toml of what one shows.

    'guess module:function' runs a function once without a GPU and predicts the trace of the whole program;
    'guess module:function --help' has its options (--gpu, --torch, --compile, --values, -o ...).
    'guess sdpa' and 'guess attention' predict calls from their shapes, for a GPU and a PyTorch version.
    'guess --why TRACE' holds each call of scaled_dot_product_attention in a trace with shapes against
    PyTorch's rules: the backend that ran, the one to be expected, why the others were refused, what to
    change. --torch, --cudnn and --gpu say what the trace does not.
    'guess --from TRACE' claims what a trace shows and does not change from run to run: exact counts, the SDPA
    backend, data types, tensor cores. Hold later traces against it with 'tracehunch check'; edit it freely.
    """
    options = {name: value for name, value in given.items() if value not in (None, "", (), False)}
    if ctx.invoked_subcommand is not None:
        if options or source or asked or output is not None:
            raise click.UsageError(
                f"options of --from and --why do not go with 'guess {ctx.invoked_subcommand}'", ctx
            )
        return common.FINE
    if source is None and asked is None:
        raise click.MissingParameter(ctx=ctx, param=ctx.command.params[0])
    if source is not None and asked is not None:
        raise click.UsageError("--from and --why exclude each other", ctx)
    _refuse_foreign(ctx, options, _OF_WHY if asked is None else _OF_FROM)
    if asked is None:
        return _from_trace(str(source), output, times=given["times"], scopes=given["scopes"])
    return why(
        asked,
        given["output_format"],
        output,
        gpu=given["gpu"],
        torch_version=given["torch_version"],
        cudnn=given["cudnn"],
    )


def _refuse_foreign(ctx: click.Context, options: dict[str, Any], foreign: dict[str, str]) -> None:
    """Complain of options that belong to the other kind of guess."""
    wrong = [foreign[name] for name in options if name in foreign]
    if wrong:
        kind = "--why" if foreign is _OF_WHY else "--from"
        raise click.UsageError(f"{', '.join(wrong)} goes with {kind}", ctx)


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


guess.add_command(program)
guess.add_command(sdpa)
guess.add_command(attention)
