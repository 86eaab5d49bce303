"""How long a backend would need: where that can be said at all."""

from dataclasses import replace

from tracehunch.predict.traced import explain
from tracehunch.predict.traced.times import expected_times, is_plausible


def grown(spec, length):
    return replace(spec, shape=(*spec.shape[:2], length, spec.shape[3]))


def test_absurd_sizes_have_no_time(tree_of):
    (group,) = explain(tree_of("h200/ops/gqa_auto")).groups
    case = group.shown
    assert expected_times(case)
    long = replace(
        case.call, q=grown(case.call.q, 1 << 40), k=grown(case.call.k, 1 << 40), v=grown(case.call.v, 1 << 40)
    )
    assert is_plausible(case.call)
    assert not is_plausible(long)
    assert expected_times(replace(case, call=long)) == {}
