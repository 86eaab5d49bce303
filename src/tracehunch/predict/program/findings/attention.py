"""unfused-attention: attention written out as product, softmax, product, told by the sizes that fit."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tracehunch.predict.forecast import forecast
from tracehunch.predict.program.findings._run import (
    Run,
    at_line,
    kind_of_module,
    launches,
    line_of,
    modules_of,
    scope_of,
    times,
    us_of,
)
from tracehunch.predict.program.model import CallGuess, Foreseen
from tracehunch.predict.roofline import AttentionTime
from tracehunch.predict.sdpa import SdpaCall, sdpa_call
from tracehunch.units import plural, time_range_us, time_us

ID: Final = "unfused-attention"
_SOFTMAX: Final = ("aten::_softmax", "aten::_safe_softmax")
_PRODUCTS: Final = ("aten::bmm", "aten::baddbmm", "aten::mm")
_INSIDE_SOFTMAX: Final = ("aten::view", "aten::prepare_softmax_online")
"""Of a generated kernel: what is no step that a program writes."""
_SOFTMAX_BACKWARD: Final = "aten::_softmax_backward_data"
_MASKS: Final = ("masked_fill", "where", "tril", "triu")
_REACH: Final = 8
"""Products between the softmax and the two that belong to it."""
_LEAST_KEYS: Final = 128
"""Without a batch, weights over fewer columns are taken for those of classes or experts."""
_LEAST_PART: Final = 0.25
"""Part of the chain's time that has to be saved: the expected times are ranges, and less is no promise."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Of one attention; `batch` is batch times heads."""

    batch: int
    queries: int
    keys: int
    head_dim: int
    value_dim: int
    dtype: str

    @property
    def scores(self) -> int:
        """Elements of the score matrices."""
        return self.batch * self.queries * self.keys


@dataclass(frozen=True, slots=True)
class Chain:
    """The calls of one attention by hand, from product to product, and those of its backward."""

    calls: tuple[CallGuess, ...]
    sizes: Sizes
    backward: tuple[CallGuess, ...] = ()
    names: tuple[str, ...] = ()
    """The ops of `calls`, those that are merged in a generated kernel as well."""

    @property
    def masked(self) -> bool:
        """Whether some scores are masked."""
        return any(word in name for name in self.names for word in _MASKS)

    @property
    def dropped(self) -> bool:
        """Whether weights are dropped out."""
        return any("dropout" in name for name in self.names)


def unfused(run: Run) -> Iterator[Foreseen]:
    """Report attention by hand, by the kind of module and its sizes."""
    groups: dict[tuple[str, Sizes], list[Chain]] = {}
    for chain in chains(run):
        key = kind_of_module(chain.calls[0].call.module), chain.sizes
        groups.setdefault(key, []).append(chain)
    for same in groups.values():
        yield from _finding(run, same)


def chains(run: Run) -> list[Chain]:
    """Pair each softmax of the forward with the product before it and the one after it."""
    work = [one for one in run.calls if launches(one)]
    forward = [one for one in work if one.call.phase == "forward"]
    backward = [one for one in work if one.call.phase == "backward"]
    softmax = [at for at, one in enumerate(forward) if _is_softmax(run, one)]
    found = [_chain(run, forward, at) for at in softmax]
    made = [chain for chain in found if chain is not None]
    return _with_backward(run, made, backward)


def _is_softmax(run: Run, one: CallGuess) -> bool:
    return any(name in _SOFTMAX for name in run.names_of(one))


def _chain(run: Run, work: Sequence[CallGuess], at: int) -> Chain | None:
    """Return the chain around a softmax; a generated kernel has the scores among all that it touches."""
    alone = work[at].call.op in _SOFTMAX
    sizes_of = {given.numel for given in work[at].call.tensors[: 1 if alone else None]}
    first = _nearest(run, work, range(at - 1, -1, -1), lambda one: _result(one) in sizes_of)
    if first is None:
        return None
    scores = _result(work[first])
    for last in _products(run, work, range(at + 1, len(work))):
        sizes = _sizes(work[first], work[last])
        if sizes is not None and sizes.scores == scores:
            inside = tuple(one for one in work[first : last + 1] if _touches(one, sizes))
            return Chain(inside, sizes, names=_names(run, inside))
    return None


def _names(run: Run, calls: Sequence[CallGuess]) -> tuple[str, ...]:
    return tuple(name for one in calls for name in run.names_of(one) if name not in _INSIDE_SOFTMAX)


def _products(run: Run, work: Sequence[CallGuess], where: range) -> Iterator[int]:
    """Yield the nearest products, up to another softmax."""
    seen = 0
    for at in where:
        if _is_softmax(run, work[at]) or seen == _REACH:
            return
        if work[at].call.op in _PRODUCTS:
            seen += 1
            yield at


def _nearest(
    run: Run, work: Sequence[CallGuess], where: range, fits: Callable[[CallGuess], bool]
) -> int | None:
    return next((at for at in _products(run, work, where) if fits(work[at])), None)


def _operands(one: CallGuess) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shapes of both factors; what is added stands before them, a given output after."""
    at = one.call.op == "aten::baddbmm"
    first, second = one.call.tensors[at : at + 2]
    return first.shape, second.shape


def _result(one: CallGuess) -> int:
    if len(one.call.tensors) < 2 + (one.call.op == "aten::baddbmm"):
        return 0
    first, second = _operands(one)
    batch = first[0] if len(first) == 3 else 1
    return batch * first[-2] * second[-1]


def _sizes(scores: CallGuess, values: CallGuess) -> Sizes | None:
    """Return the sizes of the attention that two products make; None where they do not fit each other."""
    (a, b), (c, d) = _operands(scores), _operands(values)
    if len(a) != len(b) or len(c) != len(d) or len(a) != len(c):
        return None
    batch = a[0] if len(a) == 3 else 1
    rows, inner, columns = a[-2], a[-1], b[-1]
    again = c[0] if len(c) == 3 else 1
    keys = c[-1]
    if again != batch or keys not in (rows, columns):
        return None
    queries = columns if keys == rows != columns else rows
    if queries == c[-2]:
        width = d[-1]
    elif queries == d[-1]:
        width = c[-2]
    else:
        return None
    if batch == 1 and min(keys, queries) < _LEAST_KEYS:
        return None
    return Sizes(batch, queries, keys, inner, width, scores.call.tensors[-1].dtype)


def _touches(one: CallGuess, sizes: Sizes) -> bool:
    """Whether a call reads or writes scores, or their transposes."""
    ends = ((sizes.queries, sizes.keys), (sizes.keys, sizes.queries))
    both = (*one.call.tensors, *one.call.outputs)
    return any(given.numel == sizes.scores and given.shape[-2:] in ends for given in both)


def _with_backward(run: Run, found: list[Chain], backward: Sequence[CallGuess]) -> list[Chain]:
    """Give each chain its part of the calls of the backward that touch scores of its size."""
    if not any(_SOFTMAX_BACKWARD in run.names_of(one) for one in backward):
        return found
    by_size: dict[Sizes, list[Chain]] = {}
    for chain in found:
        by_size.setdefault(chain.sizes, []).append(chain)
    made = []
    for sizes, same in by_size.items():
        touching = [one for one in backward if _touches(one, sizes)]
        each = len(touching) // len(same)
        made += [
            replace(chain, backward=tuple(touching[at * each : (at + 1) * each]))
            for at, chain in enumerate(same)
        ]
    return made


@dataclass(frozen=True, slots=True)
class _Expected:
    """What SDPA is expected to take for one attention, forward and backward."""

    low_us: float
    high_us: float


def _expected(run: Run, chain: Chain) -> _Expected | None:
    found = forecast("auto", _as_sdpa(chain), run.env, clock="gpu")
    if not isinstance(found.time, AttentionTime) or found.backend == "math":
        return None
    low, high = found.time.low_us, found.time.high_us
    if chain.backward:
        if not isinstance(found.backward, AttentionTime):
            return None
        low, high = low + found.backward.low_us, high + found.backward.high_us
    return _Expected(low, high)


def _as_sdpa(chain: Chain) -> SdpaCall:
    sizes = chain.sizes
    return sdpa_call(
        1, sizes.batch, sizes.queries, sizes.head_dim, keys=sizes.keys, value_dim=sizes.value_dim,
        dtype=sizes.dtype, dropout=0.1 if chain.dropped else 0.0, requires_grad=bool(chain.backward),
    )  # fmt: skip


def _finding(run: Run, same: Sequence[Chain]) -> Iterator[Foreseen]:
    expected = _expected(run, same[0])
    if expected is None:
        return
    calls = [one for chain in same for one in (*chain.calls, *chain.backward)]
    spent, each = us_of(calls), len(same)
    saved = max(spent - each * expected.high_us, 0.0)
    if not saved or saved < _LEAST_PART * spent:
        return
    chain = same[0]
    inside = ", which Inductor did not turn into SDPA" if _is_compiled(run, chain) else ""
    what = "attention and its backward" if chain.backward else "attention"
    sizes = chain.sizes
    yield Foreseen(
        id=ID,
        scope=scope_of(chain.calls) if len(same) == 1 else scope_of([one.calls[0] for one in same]),
        severity=run.severity(spent, saved),
        confidence="medium" if sizes.batch == 1 else "high",
        time_at_stake_us=saved,
        summary=f"{what} by hand, {times(each)}: "
        f"{plural(sum(map(launches, calls)), 'GPU activity', 'GPU activities')}, {time_us(spent)}, where "
        "scaled_dot_product_attention is expected to take "
        f"{time_range_us(each * expected.low_us, each * expected.high_us)}{at_line(chain.calls[:1])}",
        cause=f"It is the chain {', '.join(name.removeprefix('aten::') for name in chain.names)}{inside}. "
        "Its scores "
        f"are {sizes.batch} x {sizes.queries} x {sizes.keys} elements of {sizes.dtype}, written to memory "
        "and read "
        "back at each step; a fused kernel writes none of it. At stake is what lies above the upper end "
        "of the "
        "expected time.",
        fix=_fix(chain),
        modules=modules_of([one.calls[0] for one in same]),
        line=line_of(chain.calls),
        subject="aten::_softmax",
        count=each,
        small=not run.is_noticeable(saved),
    )


def _is_compiled(run: Run, chain: Chain) -> bool:
    return run.compiled is not None and all(id(one) in run.compiled.inside for one in chain.calls)


def _fix(chain: Chain) -> str:
    arguments, aside = ["q, k, v"], ""
    if chain.masked:
        arguments.append("is_causal=True")
        aside = " (another mask than the causal one as attn_mask=mask)"
    elif any(name.startswith("aten::add") for name in chain.names):
        arguments.append("attn_mask=mask")
    if chain.dropped:
        arguments.append("dropout_p=p")
    return (
        f"F.scaled_dot_product_attention({', '.join(arguments)}) in place of attention by hand{aside}, with "
        "scale= where "
        "it is not 1/sqrt(head dimension) and enable_gqa=True in place of repeated heads. Hugging Face "
        "models "
        'take attn_implementation="sdpa", nn.MultiheadAttention need_weights=False.'
    )
