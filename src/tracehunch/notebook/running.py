"""Runs the body of a cell in the user's namespace, as IPython would, as often as was asked.

The value of the last expression is returned, not shown: formatting a tensor runs dozens of ops, which would
stand in the trace.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracehunch.errors import CaptureError

if TYPE_CHECKING:
    from types import CodeType


class CellRaised(Exception):  # noqa: N818  # no error of ours
    """Carries what the user's code raised, of whatever kind, past everything that handles our own errors."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


@dataclass(frozen=True, slots=True)
class Body:
    """A compiled body: its statements, and the expression it ends in, if any and not silenced with ``;``."""

    statements: CodeType
    ending: CodeType | None

    def without_callers(self, error: BaseException) -> BaseException:
        """Take out of an error's traceback what stands above the body: how it was recorded."""
        frames = error.__traceback__
        while frames is not None and frames.tb_frame.f_code.co_filename != self.statements.co_filename:
            frames = frames.tb_next
        return error.with_traceback(frames or error.__traceback__)

    def run(self, ip: Any) -> object:
        """Run it once; what it assigns stays.

        Raises:
            CellRaised: whatever it raised.

        """
        try:
            exec(self.statements, ip.user_global_ns, ip.user_ns)  # noqa: S102  # what a cell is there for
            if self.ending is None:
                return None
            return eval(self.ending, ip.user_global_ns, ip.user_ns)  # noqa: S307  # as above
        except BaseException as error:  # noqa: BLE001  # IPython shows it, whatever it is
            raise CellRaised(error) from None


def compile_body(ip: Any, line: str, body: str) -> Body:
    """Compile the body of a cell whose first line is the magic and ``line``.

    Raises:
        SyntaxError: it is no Python. CaptureError: it has await at its top level.

    """
    code = ip.transform_cell(body)
    if ip.should_run_async(body, transformed_cell=code, preprocessing_exc_tuple=None):
        raise CaptureError(
            "%%hunch cannot run this cell", "it has await at its top level", "profile what it awaits"
        )
    number = len(ip.history_manager.input_hist_raw) - 1  # of the cell, as tracebacks call it
    whole = f"# %%hunch {line}\n{code}"  # so that its lines have the numbers that they have in the cell
    name = ip.compile.cache(whole, number, f"%%hunch {line}\n{body}")
    tree = ip.transform_ast(ip.compile.ast_parse(whole, filename=name))
    silent = code.rstrip().endswith(";")
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) and not silent else None
    return Body(
        ip.compile(tree, name, "exec"),
        None if last is None else ip.compile(ast.Expression(last.value), name, "eval"),
    )
