"""``tracehunch guess --why TRACE``: which backend each SDPA call ran on, which was expected, and why."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tracehunch.cli import common
from tracehunch.cli.guess_options import gpu_of, refuse_odd_cudnn
from tracehunch.cli.inputs import refuse_to_overwrite
from tracehunch.cli.options import TEXT_FORMATS

if TYPE_CHECKING:
    from tracehunch.predict.traced import Explained
    from tracehunch.tree import Tree


def why(
    source: str,
    output_format: str | None,
    output: Path | None,
    *,
    gpu: str,
    torch_version: str,
    cudnn: int | None,
) -> int:
    """Explain the SDPA calls of a trace; what is given of the machine goes before what the file says."""
    from tracehunch.predict.traced import Asked, explain  # noqa: PLC0415  # tables load only where they are used
    from tracehunch.tree import link  # noqa: PLC0415  # numpy and msgspec load only when a trace is looked at

    picked = common.pick_format(output_format, output, TEXT_FORMATS)
    refuse_to_overwrite(output, Path(source))
    refuse_odd_cudnn(cudnn)
    asked = Asked(torch=torch_version, cudnn=cudnn, gpu=gpu_of(gpu) if gpu else None)
    tree = link(common.read_trace(source))
    explained = explain(tree, asked)
    common.emit(_rendered(explained, tree, picked, output, source), output)
    on_gpu = any(group.calls[0].place == "gpu" for group in explained.groups)
    if (gpu or cudnn) and explained.groups and not on_gpu:
        common.note(f"{'--gpu' if gpu else '--cudnn'} changes nothing: no call ran on a GPU")
    return common.FINE


def _rendered(explained: Explained, tree: Tree, picked: str, output: Path | None, source: str) -> str | bytes:
    path = Path(source)
    named = str(path / tree.trace.label) if path.is_dir() else source
    if picked == "json":
        from tracehunch.report import why_json  # noqa: PLC0415  # loaded only where it is needed

        return why_json.render(explained, tree)
    if picked == "markdown":
        from tracehunch.report import why_markdown  # noqa: PLC0415  # as above

        return why_markdown.render(explained, tree, source=named)
    from tracehunch.report import why as terminal  # noqa: PLC0415  # as above

    return terminal.render(explained, tree, view=common.view(output), source=named)
