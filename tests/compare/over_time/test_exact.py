from tracehunch.compare.over_time.exact import examine


def kind(values, numbers=None):
    return examine(values, numbers or list(range(len(values))))


def test_every_change_of_a_count_is_one():
    found = kind([5] * 7 + [6] * 4)
    assert (found.kind, found.cuts) == ("step", (7,))
    assert kind([5] * 11).kind == "constant"


def test_texts_change_too_and_may_change_back():
    found = kind(["flash"] * 5 + ["math"] * 4 + ["flash"] * 6)
    assert (found.kind, found.cuts) == ("step", (5, 9))


def test_one_call_that_differs_is_a_one_off():
    found = kind([5] * 9 + [7] + [5] * 9)
    assert (found.kind, found.odd) == ("one-off", (9,))


def test_the_last_call_alone_is_no_new_level():
    assert kind([5] * 9 + [6]).kind == "one-off"


def test_a_growing_count_is_a_trend():
    found = kind([10, 12, 14, 16, 18, 20])
    assert (found.kind, found.slope) == ("trend", 2.0)


def test_turns_go_by_the_numbers_of_the_steps_not_by_what_was_recorded():
    numbers = [n for n in range(40) if n % 9 > 2]
    found = kind([3 if n % 4 == 0 else 2 for n in numbers], numbers)
    assert (found.kind, found.every) == ("turns", 4)
    assert [numbers[at] for at in found.odd] == [n for n in numbers if n % 4 == 0]


def test_no_order_is_said_to_be_none():
    assert kind([1, 5, 2, 7, 1, 9, 3, 5, 8, 2, 6, 1]).kind == "varies"
