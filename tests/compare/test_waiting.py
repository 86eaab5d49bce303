"""What people wait for, and which time a scope is ranked by."""

import pytest

from tracehunch.compare.waiting import gain_us, waits_for_host


def scope_of(diff, name):
    return next(scope for scope in diff.scopes if scope.pair.after.scope.name == name)


CASES = [
    (("h200/models/llama_eager_prefill", "h200/models/llama_sdpa_prefill"), (True, True), "wall_time"),
    (("h200/seeds/naive", "h200/seeds/naive_inplace"), (False, False), "gpu_time"),
    (("h200/seeds/sdpa_math", "h200/seeds/sdpa_flash"), (False, True), "gpu_time"),
    (("h200_patterns/adam_loop_large", "h200_patterns/adam_foreach_large"), (False, False), "gpu_time"),
    (("h200_waits/pinned_dtoh", "h200/faults/tiny_batch"), (False, True), "period"),
    (("h200_plans/plan_cost_varying", "h200_plans/plan_cost_varying_flash"), (True, True), "period"),
    (("cpu/naive", "cpu/naive_inplace"), (True, True), "wall_time"),
]


@pytest.mark.parametrize(("names", "on_host", "key"), CASES)
def test_a_scope_is_ranked_by_what_people_wait_for(changed, names, on_host, key):
    scope = changed(*names).scopes[0]
    assert tuple(map(waits_for_host, (scope.pair.before, scope.pair.after))) == on_host
    assert scope.time_key == key
    assert (scope.delta_us > 0) == (gain_us(scope.pair) > 0)


def test_a_longer_wall_time_is_no_regression_where_a_gpu_took_longer_before(changed):
    """The host ran ahead of the GPU before: it did not wait for its 2.3 ms."""
    found = changed("h200_waits/pinned_dtoh", "h200/faults/tiny_batch")
    assert scope_of(found, "step").fact("wall_time").outcome == "more"
    assert not [one.text for one in found.regressions if "is slower" in one.text]
