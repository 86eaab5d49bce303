"""tracehunch from Python: guess, profile, look. Runs on a CPU as on a GPU, in a few seconds.

    python examples/python_api.py

Checked with ``mypy --strict``: what is written here is what the types promise.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import torch
from torch.nn import functional

import tracehunch
from tracehunch import Guess, Look, Profile, TracehunchError, Verdict

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Causal attention. Shapes (batch, heads, tokens, head size)."""
    return functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def a_block(folder: Path) -> Profile:
    """Guess what a block does, then run it."""
    q, k, v = (torch.randn(2, 4, 256, 64, device=DEVICE) for _ in range(3))
    attention(q, k, v)  # what happens only once, happens here
    guess = {"leaf_ops": "<= 20", "any_copies": 0, "gpu_time": "< 10ms"}
    with tracehunch.profile("attn_fwd", guess, path=folder / "attention.json.gz") as p:
        attention(q, k, v)
    return p


def a_loop(folder: Path) -> Profile:
    """Record three steps of a training loop; the others run as they always do."""
    model = torch.nn.Linear(64, 64).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with tracehunch.profile("train_step", path=folder / "train.json.gz", steps=3) as p:
        for _ in range(20):
            optimizer.zero_grad()
            model(torch.randn(32, 64, device=DEVICE)).square().mean().backward()
            optimizer.step()
            p.step()
    return p


@tracehunch.profiled("gelu_mlp", guess={"leaf_ops": "4..20"})
def gelu_mlp(x: torch.Tensor, up: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
    """Return an MLP of shapes (tokens, d), (d, 4 d), (4 d, d); the second call is profiled."""
    return functional.gelu(x @ up) @ down


def your_own_profiler(folder: Path) -> Look:
    """Keep your own torch.profiler: its cycles become files, each held against the guess."""
    ready = tracehunch.trace_ready(folder, guess={"scope": "step", "leaf_ops": "> 0"})
    schedule = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=2)
    with torch.profiler.profile(schedule=schedule, on_trace_ready=ready, record_shapes=True) as profiler:
        for _ in range(10):
            torch.randn(64, 64, device=DEVICE).softmax(-1)
            profiler.step()
    print(f"{len(ready.trace_paths)} traces, the last one: {ready.verdict}")
    return ready.look


def a_finished_profiler() -> Look:
    """Look at a profiler that has finished, without a file."""
    with torch.profiler.profile() as profiler:
        torch.randn(64, 64, device=DEVICE).softmax(-1)
    return tracehunch.look(profiler)


def main() -> int:
    """Run all of it; the exit code says whether the guess on attention held."""
    folder = Path(tempfile.mkdtemp(prefix="tracehunch-example-"))
    p = a_block(folder)
    p.verdict.print()
    print(f"attention: {p.facts['sdpa.backend']}, {p.facts['cpu_time_us']} us of CPU time, in {p.trace_path}")

    loop = a_loop(folder)
    print(f"training: {loop.steps_recorded} steps, {loop.facts['leaf_ops']} leaf ops each")

    x, up, down = torch.randn(8, 64), torch.randn(64, 256), torch.randn(256, 64)
    for _ in range(3):
        gelu_mlp(x, up, down)
    print(f"gelu_mlp: {gelu_mlp.profile.facts['leaf_ops']} leaf ops, {gelu_mlp.profile.verdict!r}")

    own = your_own_profiler(folder)
    print(f"own profiler: scopes {', '.join(own.scopes)}")
    print(f"finished profiler: {len(a_finished_profiler().findings)} findings")

    baseline: Guess = tracehunch.guess_from(folder / "attention.json.gz", scopes=["attn_fwd"])
    again: Verdict = tracehunch.check(baseline, folder / "attention.json.gz").verdict
    print(f"against its own baseline: {len(again.held)} held, {len(again.surprises)} surprises")

    try:
        tracehunch.profile("attn_fwd", guess={"kernel": 5})
    except TracehunchError as error:
        print(f"a slip of the pen: {error}")
    return 1 if p.verdict.surprises else 0


if __name__ == "__main__":
    sys.exit(main())
