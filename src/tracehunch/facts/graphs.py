"""CUDA graphs, and what torch.compile made and how often it had to."""

import re
from typing import Final

import numpy as np

from tracehunch.facts.column import Column, Words
from tracehunch.facts.compiler import is_autotuning
from tracehunch.facts.context import Context
from tracehunch.facts.intervals import Cover
from tracehunch.trace.model import UNKNOWN_NS, Cat, Int64
from tracehunch.tree import NONE, Api, work_of
from tracehunch.tree.names import names_that

_REGION: Final = "Torch-Compiled Region"
_GRAPH_CALL: Final = "## Call CompiledFxGraph "
_FRAME: Final = re.compile(
    r"entire_frame_compile(?: \(dynamo_timed\))?|_compile\.compile_inner(?: \(dynamo_timed\))?"
)
_COMPILE_ID: Final = re.compile(r"(?:entire_frame_compile|dynamo)_data: .*\bcompile_id=\d+/(\d+)")
_GENERATED: Final = (
    "triton_poi_fused",
    "triton_red_fused",
    "triton_per_fused",
    "triton_tem_fused",
    "triton_mix_fused",
)


def columns(context: Context) -> list[Column]:
    """Replays, regions and compilations per call."""
    return [*_replays(context), *_compiled(context)]


def words(context: Context) -> list[Words]:
    """Return for each generated kernel of a scope the ops merged in it, joined as in its name."""
    uses = context.gpu.uses
    texts = {
        number: text for number, use in enumerate(uses) if (text := _merged(use.name, use.identity.fields))
    }
    if not texts:
        return []
    pairs = context.ownership.gpu.pairs
    generated = np.isin(context.gpu.use[pairs.item], list(texts))
    key = context.pair_scope[generated] * len(uses) + context.gpu.use[pairs.item[generated]]
    values: dict[int, set[str]] = {}
    for number in np.unique(key).tolist():
        scope, use = divmod(number, len(uses))
        values.setdefault(scope, set()).add(texts[use])
    return [Words("fused", {scope: tuple(sorted(found)) for scope, found in values.items()})]


def _merged(name: str, fields: tuple[tuple[str, str], ...]) -> str:
    ops = dict(fields).get("ops merged", "")
    return ops if name.startswith(_GENERATED) else ""


def _replays(context: Context) -> list[Column]:
    tree, gpu = context.tree, context.gpu
    launch = tree.launch[gpu.row].astype(np.int64)
    if not tree.launches.size:
        return []
    n_gpu = np.bincount(launch[launch != NONE], minlength=len(context.trace))
    rows = tree.launches[(tree.api[tree.launches] == Api.GRAPH) | (n_gpu[tree.launches] > 1)]
    layout = context.ownership.layout(work_of(context.trace, rows, tree.engine))
    replays, own = layout.sums()
    found = [Column("graph", replays, own, None, context.work_rows(layout, rows))]
    if gpu.row.size and rows.size:
        activities = layout.sums(n_gpu[rows])[0]
        found.append(
            Column(
                "graph.activities",
                activities // np.maximum(replays, 1),
                None,
                (replays > 0) & context.gpu_known,
            )
        )
    return found


def _compiled(context: Context) -> list[Column]:
    """Regions that ran; compilations beyond the first of their code; time inside compilations."""
    trace, ops = context.trace, context.tree.ops
    annotations = trace.rows(Cat.USER_ANNOTATION)
    regions = _named(context, ops, _REGION)
    if not regions.size:
        regions = np.concatenate(
            [_named(context, ops, _GRAPH_CALL), _named(context, annotations, _GRAPH_CALL)]
        )
    host = np.concatenate([ops, annotations])
    frames = host[names_that(trace, lambda name: _FRAME.fullmatch(name) is not None)[trace.name[host]]]
    again = names_that(
        trace, lambda name: (found := _COMPILE_ID.match(name)) is not None and found.group(1) != "0"
    )
    repeated = _one_each(context, annotations[again[trace.name[annotations]]])
    if not regions.size and not frames.size:
        return []
    found = [_count(context, "compiled", regions), Column("compiled.compile_time", _covered(context, frames))]
    if not frames.size or names_that(trace, lambda name: _COMPILE_ID.match(name) is not None).any():
        found.append(_count(context, "compiled.recompiles", repeated))
    tuning = is_autotuning(context.tree, context.gpu.row)
    if tuning.any():
        trials, own = context.ownership.gpu.sums(tuning)
        found.append(Column("compiled.autotuning", trials, own, context.gpu_known, context.gpu_rows(tuning)))
    return found


def _named(context: Context, rows: Int64, prefix: str) -> Int64:
    return rows[names_that(context.trace, lambda name: name.startswith(prefix))[context.trace.name[rows]]]


def _one_each(context: Context, rows: Int64) -> Int64:
    """One row per compilation: several phases name its id."""
    ids = [f"{context.trace.name_of(row).rpartition('compile_id=')[2]}" for row in rows.tolist()]
    first: dict[str, int] = {}
    for row, of in zip(rows.tolist(), ids, strict=True):
        first.setdefault(of, row)
    return np.array(sorted(first.values()), dtype=np.int64)


def _count(context: Context, key: str, rows: Int64) -> Column:
    layout = context.ownership.layout(work_of(context.trace, rows, context.tree.engine))
    everywhere, _ = layout.sums()
    return Column(key, everywhere, None, None, context.work_rows(layout, rows))


def _covered(context: Context, rows: Int64) -> Int64:
    """Time of each call that lies in these rows, on any thread."""
    trace, spans = context.trace, context.ownership.spans
    rows = rows[(trace.start_ns[rows] != UNKNOWN_NS) & (trace.dur_ns[rows] != UNKNOWN_NS)]
    cover = Cover(trace.start_ns[rows], trace.end_ns()[rows])
    return cover.until(spans.end_ns) - cover.until(spans.start_ns)
