"""What counts as a change, and what as noise."""

from dataclasses import replace

import pytest

from tracehunch.compare.changes import without_doubt


@pytest.fixture
def change(changed):
    scope = next(one for one in changed("h200/seeds/naive", "h200/seeds/naive_inplace").scopes if one.changes)
    return replace(scope.changes[0], is_noise=True)  # -126.9 us


@pytest.mark.parametrize(
    ("moved_us", "is_noise"),
    [(0.0, True), (-125.4, False), (-250.0, False), (-300.0, True), (+125.4, True)],
)
def test_what_makes_up_most_of_what_its_scope_moved_by_is_no_noise(change, moved_us, is_noise):
    (found,) = without_doubt([change], moved_us)
    assert found.is_noise is is_noise


def test_what_is_no_noise_stays_so(change):
    (found,) = without_doubt([replace(change, is_noise=False)], 1e6)
    assert not found.is_noise
