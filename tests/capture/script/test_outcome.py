from pathlib import Path

import pytest

from tracehunch.capture.recorder import Recording
from tracehunch.capture.script.finder import Finder
from tracehunch.capture.script.outcome import Outcome, explained


@pytest.mark.parametrize(
    ("only", "forwards", "said"),
    [
        (None, 0, "recorded the script as a whole: t.json"),
        ("optimizer", 0, "recorded the script as a whole (the script made no optimizer step): t.json"),
        ("forward", 1, "recorded the script as a whole (1 forward, too few with 2 skipped and 1 to warm up"),
    ],
)
def test_what_was_wanted_and_is_not_recorded_is_told(only, forwards, said):
    finder = Finder(skip=2, only=only)
    for _ in range(forwards):
        finder.forward(1)
    outcome = explained(Outcome("whole", Path("t.json")), finder, Recording(skip=2), torch_came=True)
    assert outcome.sentence.startswith(said)
