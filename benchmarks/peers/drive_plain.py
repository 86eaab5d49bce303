"""Plain parsers, as points of reference: `python drive_plain.py json|orjson|msgspec TRACE`.

msgspec is given types with the fields that an analysis needs at least, and leaves `args` raw.
"""

import gzip
import json
import sys
from pathlib import Path
from typing import Any

from stages import Stages


def read(trace: str) -> bytes:
    """Return a trace's JSON."""
    data = Path(trace).read_bytes()
    return gzip.decompress(data) if trace.endswith(".gz") else data


def with_orjson(data: bytes) -> Any:
    """Parse to dicts."""
    import orjson  # noqa: PLC0415 - its import is part of what is timed

    return orjson.loads(data)


def with_msgspec(data: bytes) -> Any:
    """Parse to records of a few fields."""
    import msgspec  # noqa: PLC0415 - see above

    class Event(msgspec.Struct, gc=False):
        ph: str
        name: str = ""
        cat: str = ""
        ts: float = 0.0
        dur: float = 0.0
        pid: int | str = 0
        tid: int | str = 0
        id: int | str = 0
        args: msgspec.Raw = msgspec.Raw()

    class Document(msgspec.Struct):
        traceEvents: list[Event]  # noqa: N815 - the key in the file

    return msgspec.json.decode(data, type=Document)


def main() -> None:
    """Parse one trace."""
    parser, trace = sys.argv[1:]
    stages = Stages()
    data = stages.must("bytes", lambda: read(trace))
    parse = {"json": json.loads, "orjson": with_orjson, "msgspec": with_msgspec}[parser]
    kept = stages.must("load", lambda: parse(data))  # held, as any analysis would
    stages.tell()
    del kept


if __name__ == "__main__":
    main()
