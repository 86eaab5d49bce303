"""The Python functions of this package that run between compiled graphs: none of them is the program's."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER: Final = str(Path(__file__).parents[2])
"""Where this package lies."""


@contextmanager
def own_frames_skipped() -> Iterator[None]:
    """Keep Dynamo from compiling stand-ins that are called after a graph break, as they are on no GPU.

    What they are called in a graph for is still merged into it.
    """
    from torch._dynamo import convert_frame  # noqa: PLC0415  # an optional dependency
    from torch._dynamo.types import ConvertFrameReturn  # noqa: PLC0415  # as above

    wrapper = convert_frame.CatchErrorsWrapper
    ordinary = wrapper.__call__

    def called(self: Any, frame: Any, *rest: Any) -> Any:
        if frame.f_code.co_filename.startswith(FOLDER):
            return ConvertFrameReturn()
        return ordinary(self, frame, *rest)

    with patch.object(wrapper, "__call__", called):
        yield
