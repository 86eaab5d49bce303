"""The command ``tracehunch``: its verbs, each loaded only when used, and how every failure is told.

A verb is a click command that returns its exit code (``None`` means 0). Whatever it raises ends here, as one
line.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from tracehunch import __version__
from tracehunch.cli import failures
from tracehunch.cli.options import debug_option

if TYPE_CHECKING:
    from collections.abc import Sequence

VERBS: Final[dict[str, tuple[str, str]]] = {
    "run": ("tracehunch.cli.run", "Run a script under the profiler, with no edit, then look."),
    "look": ("tracehunch.cli.look", "Say what a trace shows, the costly surprises first."),
    "attention": ("tracehunch.cli.attention", "Guess, run and look at attention in all its variants."),
    "check": ("tracehunch.cli.check", "Hold a trace against a hunch.toml."),
    "diff": ("tracehunch.cli.diff", "Say what changed between two traces, and why."),
    "ranks": ("tracehunch.cli.ranks", "Say who waits for whom in a job of many ranks."),
    "guess": ("tracehunch.cli.guess", "Predict what a trace should show, or write the hunch.toml of one."),
    "open": ("tracehunch.cli.open", "Show a trace, or the part around a finding, in Perfetto."),
    "space": ("tracehunch.cli.space", "Write a Hugging Face Space that runs attention on its hardware."),
    "explain": (
        "tracehunch.cli.explain",
        "Explain a kernel's name, a finding, a fact or a word of a report.",
    ),
}
"""Verb -> the module that holds a click command of the same name, and its line in ``--help``."""

_EXAMPLES = """\
Start with:
  tracehunch look trace.json.gz    what this profile shows
  tracehunch attention             the guided tour, on this machine"""


class Verbs(click.Group):
    """The group of all verbs. Their modules are imported when they are called, not before."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """All verbs, in the order of the table."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  # click's signature
        """Return the verb's command, imported now; None if there is no such verb."""
        if cmd_name not in VERBS:
            return None
        # a verb named as one of Python's own has a trailing underscore: open_
        module = import_module(VERBS[cmd_name][0])
        command = getattr(module, f"{cmd_name}_", None) or getattr(module, cmd_name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb, or say which one was meant."""
        if args[0] not in VERBS and not args[0].startswith("-"):
            raise failures.unknown_verb(args[0], VERBS)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb; keep from click that nobody reads the result: its code for that means a finding."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as failure:
            raise failures.NobodyReadsError from failure

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  # click's signature
        """List the verbs without importing them."""
        with formatter.section("Verbs"):
            formatter.write_dl([(verb, line) for verb, (_, line) in VERBS.items()])
        formatter.write_paragraph()
        formatter.write(_EXAMPLES + "\n")

    def main(  # type: ignore[override]  # it never returns, whatever click's own would do
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        """Run a verb and exit with its code; tell a failure in one line, with a traceback on ``--debug``."""
        extra["standalone_mode"] = False
        state = failures.State()
        try:
            code = super().main(args, prog_name or "tracehunch", obj=state, **extra)
            if sys.stdout is not None and not sys.stdout.closed:
                sys.stdout.flush()
        except BaseException as failure:  # noqa: BLE001  # here every failure becomes a line and a code
            code = failures.tell(failure, debug=state.debug)
        sys.exit(code if isinstance(code, int) else 0)


@click.group(
    cls=Verbs,
    subcommand_metavar="VERB [ARGS]...",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, message="%(prog)s %(version)s")
@debug_option
def main() -> None:
    """Guess first, then look.

    tracehunch says what a PyTorch profile should show, looks at the trace, and puts the mismatches on top,
    each with evidence, cause and fix. 'tracehunch VERB --help' tells more about a verb.
    """
