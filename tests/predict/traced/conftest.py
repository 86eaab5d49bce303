"""Traces with SDPA calls: as recorded, and with something in them changed."""

import gzip
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tracehunch.trace import read_bytes
from tracehunch.tree import Tree, link

DATA = Path(__file__).parents[2] / "data"
SDPA = "aten::scaled_dot_product_attention"
H200_211 = {"torch_version": "2.11.0+cu130", "cudnn_version": "91900"}


@cache
def _raw(name: str) -> bytes:
    return gzip.decompress((DATA / f"{name}.json.gz").read_bytes())


@pytest.fixture(scope="session")
def document() -> Callable[[str], dict[str, Any]]:
    """A recorded trace as plain JSON, such as ``h200/ops/gqa_auto``."""
    return lambda name: json.loads(_raw(name))


@pytest.fixture(scope="session")
def tree_of() -> Callable[..., Tree]:
    """The tree of a recorded trace, or of a document; keywords are added to its header."""

    def make(what: str | dict[str, Any], **header: Any) -> Tree:
        text = _raw(what) if isinstance(what, str) and not header else None
        if text is None:
            given = json.loads(_raw(what)) if isinstance(what, str) else what
            text = json.dumps({**given, **header}).encode()
        return link(read_bytes(text, "trace.json"))

    return make


@pytest.fixture(scope="session")
def changed() -> Callable[..., dict[str, Any]]:
    """A document in which the args of ops of a name were changed."""

    def make(given: dict[str, Any], name: str = SDPA, **args: Any) -> dict[str, Any]:
        for event in given["traceEvents"]:
            if event.get("name") == name:
                event["args"] |= args
                for key in [key for key, value in args.items() if value is None]:
                    del event["args"][key]
        return given

    return make
