"""What was examined of recorded ranks, and of changed copies of them."""

from __future__ import annotations

import json

import pytest
from tests.compare.ranks.recorded import raw, summary

from tracehunch.compare.ranks.examine import examine


@pytest.fixture(scope="session")
def examined():
    """What a file of tests/data gives, such as h200/ranks/ddp/rank0; each is examined once."""
    return summary


@pytest.fixture
def changed(tmp_path):
    """Examine a copy of a recorded rank after a function has changed its JSON."""

    def make(name: str, change, file: str = "changed.json"):
        document = raw(name)
        change(document)
        path = tmp_path / file
        path.write_text(json.dumps(document))
        return examine(path)

    return make
