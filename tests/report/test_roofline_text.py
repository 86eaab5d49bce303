"""What is said of kernels' and scopes' limits."""

from pathlib import Path

import pytest

from tracehunch.facts.model import KernelWork
from tracehunch.judge import examine
from tracehunch.report import markdown, terminal
from tracehunch.report.layout import View
from tracehunch.report.roofline_text import kernel_text, peaks_text
from tracehunch.trace import read, read_bytes

CACHED = KernelWork(bound="memory", percent_of_peak=106)


@pytest.mark.parametrize(
    ("work", "said"),
    [
        (KernelWork(bound="memory", percent_of_peak=71.2), "memory-bound, 71% of peak bandwidth"),
        (KernelWork(bound="compute", percent_of_peak=54.7), "compute-bound, 55% of peak FLOP/s"),
        (CACHED, "memory-bound, 106% of peak bandwidth (from cache)"),
        (KernelWork(bound="memory", percent_of_peak=1e-4), "far from both peaks, <0.1% of peak bandwidth"),
        (KernelWork(bound="memory"), "memory-bound"),
        (KernelWork(flops=5, achieved_flops=412 * 10**12, achieved_bandwidth=10**12), "412 TFLOP/s"),
        (KernelWork(flops=0, achieved_flops=0, achieved_bandwidth=3 * 10**12), "3.00 TB/s"),
        (KernelWork(why="tensor shapes were not recorded"), ""),
    ],
)  # fmt: skip
def test_a_kernel_in_a_few_words(work: KernelWork, said: str) -> None:
    assert kernel_text(work) == said


def test_look_tells_compute_bound_from_memory_bound(h200: Path) -> None:
    look = examine(read(h200 / "models" / "llama_sdpa_prefill.json.gz"))
    lines = terminal.render(look, view=View(80)).splitlines()
    assert all(len(line) <= 80 for line in lines)
    kernels = lines[next(at for at, line in enumerate(lines) if line.startswith("Kernels")) :]
    assert any(line.startswith("    compute-bound, ") and "% of peak FLOP/s" in line for line in kernels)
    assert any(line.startswith("    memory-bound, ") and "% of peak bandwidth" in line for line in kernels)
    assert "  peaks of H200 SXM: 4.80 TB/s, 989 TFLOP/s bf16, 66.9 TFLOP/s fp32 (data sheet)" in kernels
    assert "overhead-bound: 37% of peak bandwidth, 30% of peak FLOP/s" in "\n".join(lines)
    assert "compute-bound, 75% of peak FLOP/s" in markdown.render(look)


def test_nothing_is_said_of_peaks_without_shapes(h200: Path) -> None:
    look = examine(read(h200 / "seeds" / "naive.json.gz"))
    kernels = terminal.render(look, view=View(80)).partition("\nKernels")[2]
    rows = [line for line in kernels.splitlines() if " peak" in line and "peaks of" not in line]
    assert all("Mem" in row for row in rows)  # of copies and memsets the profiler tells bytes always
    assert len(rows) == 2


def test_an_unknown_gpu_has_no_peaks() -> None:
    assert peaks_text(read_bytes(b'{"traceEvents": []}', "empty.json")) == ""
