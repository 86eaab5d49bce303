"""What each op call of recorded traces ran on the GPU, against what is predicted for its recorded arguments.

    python benchmarks/traced_ops.py [TRACE ...]      # needs torch, whose schemas name the arguments

Without traces those of `tests/data/h200` are read. An op call runs what it and the ops inside it launched.
Calls alike (name, shapes, types, strides, values) count once, with what most of them ran. A trace in which
torch.compile ran ops on tensors without data is left out.
"""

from __future__ import annotations

import ast
import gzip
import json
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from tracehunch.errors import GuessError
from tracehunch.predict.environment import environment
from tracehunch.predict.ops import Tensor, predict_op, tensor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    Event = Mapping[str, Any]
    Counts = tuple[int, int, int]

TRACES = Path(__file__).parents[1] / "tests" / "data" / "h200"
ENV = environment("h200", "2.11", 91900)
TYPES = {
    "c10::BFloat16": "bf16", "c10::Half": "fp16", "float": "fp32", "double": "fp64", "long int": "int64",
    "int": "int32", "short int": "int16", "signed char": "int8", "unsigned char": "uint8", "bool": "bool",
}  # fmt: skip
SCALAR_TYPES = {
    0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "fp16", 6: "fp32", 7: "fp64", 11: "bool",
    15: "bf16",
}  # fmt: skip
"""c10::ScalarType, by number."""
FORMATS = ("contiguous", "preserve", "channels_last", "channels_last_3d")
GPU = ("kernel", "gpu_memcpy", "gpu_memset")
RECORDED = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")


@dataclass
class Alike:
    """Op calls with the same arguments, and what each ran: kernels, copies and memsets."""

    event: Event
    ran: Counter[Counts] = field(default_factory=Counter)

    @property
    def counts(self) -> Counts:
        """What most of them ran."""
        return self.ran.most_common(1)[0][0]

    def predicted(self) -> Counts | None:
        """Return what is predicted; None where it cannot be told."""
        tensors, options = arguments(self.event)
        try:
            said = predict_op(self.event["name"], tensors, options, ENV)
        except GuessError:
            return None
        if said.kernel_count is None or said.memsets is None:
            return None
        return said.kernel_count, said.copy_count, said.memsets


def op_calls(events: Sequence[Event]) -> Iterator[tuple[Event, list[str]]]:
    """Yield each op of a trace and the names of what it put on the GPU, by nesting of times in a thread."""
    gpu: dict[Any, list[str]] = defaultdict(list)
    threads: dict[Any, list[Event]] = defaultdict(list)
    for event in events:
        category = event.get("cat")
        if event.get("ph") != "X":
            continue
        if category in GPU:
            gpu[event["args"].get("correlation")].append(event["name"])
        elif category in ("cpu_op", "cuda_runtime", "cuda_driver"):
            threads[event["tid"]].append(event)
    for thread in threads.values():
        thread.sort(key=lambda event: (float(event["ts"]), -float(event["dur"])))
        yield from _nested(thread, gpu)


def _nested(thread: Iterable[Event], gpu: Mapping[Any, list[str]]) -> list[tuple[Event, list[str]]]:
    found: list[tuple[Event, list[str]]] = []
    around: list[tuple[Event, list[str]]] = []
    for event in thread:
        while around and float(event["ts"]) >= _end(around[-1][0]):
            around.pop()
        if event["cat"] == "cpu_op":
            around.append((event, []))
            found.append(around[-1])
        else:
            for _, names in around:
                names.extend(gpu.get(event["args"].get("correlation"), []))
    return found


def _end(event: Event) -> float:
    return float(event["ts"]) + float(event["dur"]) - 1e-6


def counted(names: Sequence[str]) -> Counts:
    """Return kernels, copies and memsets."""
    memsets = sum(name.startswith("Memset") for name in names)
    copies = sum(name.startswith("Memcpy") for name in names)
    return len(names) - memsets - copies, copies, memsets


def arguments(event: Event) -> tuple[list[Tensor], dict[str, Any]]:
    """Return the tensors in order, and by name what else was recorded; lists of tensors have no dtypes."""
    args = event["args"]
    names = _argument_names(event)
    tensors: list[Tensor] = []
    options: dict[str, Any] = {}
    for at, (dims, kind) in enumerate(zip(args["Input Dims"], args["Input type"], strict=True)):
        if kind in TYPES:
            strides = args["Input Strides"][at] if args.get("Input Strides") else None
            known = strides is not None and len(strides) == len(dims)
            made = Tensor(tuple(dims), TYPES[kind], tuple(strides)) if known else tensor(dims, TYPES[kind])
            tensors.append(made)
        elif kind == "TensorList":
            tensors += [tensor(one, "fp32") for one in dims]
        elif at < len(names) and args.get("Concrete Inputs"):
            value = _value(names[at], args["Concrete Inputs"][at])
            if value is not None:
                options[names[at]] = value
    return tensors, options


def _argument_names(event: Event) -> list[str]:
    """Return the names of the schema that fits what was recorded: tensors where it has tensors."""
    dims, types = event["args"]["Input Dims"], event["args"]["Input type"]
    known = torch._C._jit_get_schemas_for_operator(event["name"])  # noqa: SLF001  # there is no public way
    schemas = [one for one in known if len(one.arguments) == len(dims)] or list(known)
    fitting = [one for one in schemas if all(map(_fits, one.arguments, types))]
    best = (fitting or schemas)[:1]
    return [argument.name for one in best for argument in one.arguments]


def _fits(argument: Any, kind: str) -> bool:
    if "Tensor" in str(argument.type):
        return kind not in ("Scalar", "ScalarList")
    return kind not in TYPES and kind != "TensorList"


def _value(name: str, text: str) -> Any:
    if text in ("", "None"):
        return None
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text
    if name == "dtype" and isinstance(value, int):
        return SCALAR_TYPES.get(value)
    if name == "memory_format" and isinstance(value, int):
        return FORMATS[value]
    return value


def alike(paths: Iterable[Path]) -> dict[tuple[str, ...], Alike]:
    """Return all op calls with recorded shapes, those with the same arguments together."""
    found: dict[tuple[str, ...], Alike] = {}
    for path in paths:
        if "recompiles" in path.name:
            continue
        data = path.read_bytes()
        events = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)["traceEvents"]
        for event, names in op_calls(events):
            args = event.get("args", {})
            if event["name"].startswith("aten::") and args.get("Input Dims"):
                key = (event["name"], *(json.dumps(args.get(part)) for part in RECORDED))
                found.setdefault(key, Alike(event)).ran[counted(names)] += 1
    return found


def main() -> None:
    """Print for each op how many calls were foretold; the calls themselves where it was wrong."""
    paths = [Path(one) for one in sys.argv[1:]] or sorted(TRACES.rglob("*.json.gz"))
    told: dict[str, list[bool | None]] = defaultdict(list)
    for key, one in alike(paths).items():
        said = one.predicted()
        told[key[0]].append(None if said is None else said == one.counts)
        if said is not None and said != one.counts:
            print("wrong:", key[0], key[1], key[2], key[4], "said", said, "ran", one.counts)
    for name, values in [*sorted(told.items()), ("all", [each for some in told.values() for each in some])]:
        right, unknown = values.count(True), values.count(None)
        print(f"{name:55} {right:5} of {len(values):5} right, cannot tell {unknown:3}")


if __name__ == "__main__":
    main()
