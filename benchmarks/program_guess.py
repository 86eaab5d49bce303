"""Programs guessed without a GPU against their H200 traces: counts by op, SDPA, leaders, time.

    python benchmarks/program_guess.py [FOLDER]        # needs torch and transformers

Without a folder, the Llama-shaped model of `tests/data/h200/models`, eager and SDPA, padded or not. A
folder has
`zoo.py`, whose functions make the programs, and `NAME.json.gz` for each, traces of two calls in an
annotation.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracehunch.capture.program import record_program
from tracehunch.predict.environment import environment
from tracehunch.predict.program import guess_program

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tracehunch.predict.program import ProgramGuess

HERE = Path(__file__).parent
MODELS = HERE.parent / "tests" / "data" / "h200" / "models"
ENV = environment("h200", "2.11", 91900)
GPU = {"kernel": 0, "gpu_memcpy": 1, "gpu_memset": 2}
TOP = 5
TIE = 0.02
"""Part of the GPU's time within which two ops may change places."""


@dataclass(frozen=True)
class Ran:
    """What one call ran by innermost op (kernels, copies, memsets, us), and SDPA calls by backend."""

    ops: Mapping[str, tuple[float, float, float, float]]
    backends: Mapping[str, int]

    @property
    def us(self) -> float:
        """All GPU time."""
        return sum(one[3] for one in self.ops.values())


def ran(path: Path, scope: str) -> Ran:
    """Read what ran inside an annotation, by the time of launch; autograd's threads as well."""
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    spans = [one for one in events if one.get("cat") == "user_annotation" and one["name"] == scope]
    ops: dict[str, list[float]] = defaultdict(lambda: [0.0] * 4)
    backends: Counter[str] = Counter()
    for op, activities in launches(events):
        inside = any(span["ts"] <= op["ts"] <= span["ts"] + span["dur"] for span in spans)
        for one in activities if inside else ():
            found = ops[op["name"]]
            found[GPU[one["cat"]]] += 1
            found[3] += one["dur"]
        name = op["name"].removeprefix("aten::_scaled_dot_product_")
        if inside and name in BACKENDS:
            backends[BACKENDS[name]] += 1
    times = {name: number // len(spans) for name, number in backends.items()}
    each = {name: [number / len(spans) for number in one] for name, one in ops.items()}
    return Ran({name: (one[0], one[1], one[2], one[3]) for name, one in each.items()}, times)


BACKENDS = {
    "flash_attention": "flash", "efficient_attention": "efficient", "cudnn_attention": "cudnn",
    "attention_math": "math",
}  # fmt: skip


def launches(events: Sequence[Any]) -> Iterator[tuple[Any, list[Any]]]:
    """Yield each op and the activities that it launched itself, by nesting of times in a thread."""
    gpu: dict[Any, list[Any]] = defaultdict(list)
    threads: dict[Any, list[Any]] = defaultdict(list)
    for one in events:
        if one.get("ph") == "X" and one.get("cat") in GPU:
            gpu[one["args"].get("correlation")].append(one)
        elif one.get("ph") == "X" and one.get("cat") in ("cpu_op", "cuda_runtime", "cuda_driver"):
            threads[one["tid"]].append(one)
    for thread in threads.values():
        around: list[tuple[Any, list[Any]]] = []
        for one in sorted(thread, key=lambda one: (float(one["ts"]), -float(one["dur"]))):
            while (
                around and float(one["ts"]) >= float(around[-1][0]["ts"]) + float(around[-1][0]["dur"]) - 1e-6
            ):
                yield around.pop()
            if one["cat"] == "cpu_op":
                around.append((one, []))
            elif around:
                around[-1][1].extend(gpu.get(one["args"].get("correlation"), []))
        yield from around


def report(name: str, guess: ProgramGuess, seen: Ran) -> None:
    """Print one line."""
    said = {
        row.op: (row.amounts.kernels, row.amounts.copies, row.amounts.gpu_time_us or 0.0)
        for row in guess.by_op
    }
    every = {*said, *seen.ops}
    exact = sum(said.get(op, (0, 0))[:2] == seen.ops.get(op, (0, 0))[:2] for op in every)
    counted, ran_all = (sum(one[0] + one[1] for one in of.values()) for of in (said, seen.ops))
    order = sorted(seen.ops, key=lambda op: -seen.ops[op][3])[:TOP]
    leaders = [row.op for row in guess.by_op][:TOP]
    places = zip(leaders, order, strict=False)
    near = all(abs(seen.ops.get(a, (0,) * 4)[3] - seen.ops[b][3]) <= TIE * seen.us for a, b in places)
    backends: Counter[str | None] = Counter()
    for one in guess.sdpa:
        backends[one.backend] += one.calls
    time = guess.totals.amounts.time
    ratio = (
        "no time"
        if time is None
        else (f"{time.mid_us / seen.us:4.2f} ({time.low_us / seen.us:4.2f} to {time.high_us / seen.us:4.2f})")
    )
    print(
        f"{name:24} ops {exact:2} of {len(every):2}  kernels + copies {counted:4.0f} of {ran_all:4.0f}"
        f" ({100 * (counted / max(ran_all, 1) - 1):+5.1f}%)  time {ratio}"
        f"  top {TOP} {'same' if leaders == order else 'within ties' if near else 'differ'}"
        f"  SDPA {'right' if backends == seen.backends else f'{dict(backends)} for {dict(seen.backends)}'}"
        f"  cannot tell {len(guess.cannot_tell)}  findings {len(guess.findings)}",
        flush=True,
    )


def llama(attention: str, *, padded: bool = False) -> Any:
    """Return the program that `tests/data/h200/models` shows."""
    import torch  # noqa: PLC0415  # only this program needs both
    from transformers import AutoModelForCausalLM, LlamaConfig  # noqa: PLC0415  # as above

    config = LlamaConfig(
        hidden_size=1024, intermediate_size=2816, num_hidden_layers=6, num_attention_heads=16,
        num_key_value_heads=4, vocab_size=32000, max_position_embeddings=4096,
    )  # fmt: skip
    made = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16, attn_implementation=attention)
    model = made.cuda().eval()
    given = {"input_ids": torch.zeros(4, 1024, dtype=torch.long, device="cuda"), "use_cache": False}
    if padded:
        given["attention_mask"] = torch.ones(4, 1024, dtype=torch.long, device="cuda")
    return torch.no_grad()(model), (), given


def llama_sdpa_prefill() -> Any:
    """Fused attention."""
    return llama("sdpa")


def llama_eager_prefill() -> Any:
    """Attention by hand."""
    return llama("eager")


def main() -> None:
    """Print a line for each program."""
    if len(sys.argv) > 1:
        folder = Path(sys.argv[1])
        for path in sorted(folder.glob("*.json.gz")):
            name = path.name.removesuffix(".json.gz")
            if not name.endswith("_compiled"):
                made = record_program(f"zoo:{name}", search=folder, env=ENV, warmup=1)
                report(name, guess_program(made, ENV), ran(path, "call"))
        return
    for name in ("llama_sdpa_prefill", "llama_eager_prefill"):
        made = record_program(f"program_guess:{name}", search=HERE, env=ENV)
        report(name, guess_program(made, ENV), ran(MODELS / f"{name}.json.gz", "model_fwd"))


if __name__ == "__main__":
    main()
