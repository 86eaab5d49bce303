"""No input is ever changed, also where it is named as the output by mistake."""

from pathlib import Path

import click

from tracehunch.errors import TracehunchError


def refuse_to_overwrite(output: Path | None, *inputs: Path) -> None:
    """Raise if the output is one of the inputs, or a file that is there already in a folder of traces."""
    if output is None or not output.exists():
        return
    for path in inputs:
        if not path.exists():
            continue
        if path.samefile(output) or (path.is_dir() and output.resolve().is_relative_to(path.resolve())):
            raise TracehunchError(f"will not overwrite {output}", "it is an input", "choose another -o")


def refuse_file_for_github(picked: str, output: Path | None) -> None:
    """Raise where workflow commands would go to a file: GitHub reads them from the output of a step."""
    if picked == "github" and output is not None:
        raise click.UsageError("--format github writes to the step's output; leave -o out")
