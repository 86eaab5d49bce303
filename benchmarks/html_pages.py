"""How large a report as HTML is, how long it takes to write and to open, and how fluidly its timeline zooms.

    python benchmarks/html_pages.py [TRACE ...] [--rounds N]

Without a trace: one of 277 events, one of 18,501, and the one of 860,000 under TRACEHUNCH_EXTRA_TRACES, where
it is. Needs playwright and a Chromium. "Open" is from the navigation to a timeline that can be used; frames
are timed while W and S zoom in and out, thirty times each, drawn by the CPU alone.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data" / "h200"
EXTRA = Path(os.environ.get("TRACEHUNCH_EXTRA_TRACES", ROOT.parent / "shared" / "traces"))
TRACES = (
    DATA / "seeds" / "naive.json.gz",
    DATA / "models" / "llama_sdpa_train.json.gz",
    EXTRA / "h200" / "big_rank0.json.xz",
)
ZOOM = """async () => {
  const lanes = document.getElementById("tl-lanes");
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  const times = [];
  await frame();
  let last = performance.now();
  for (let at = 0; at < 60; at++) {
    lanes.dispatchEvent(new KeyboardEvent("keydown", { key: at < 30 ? "w" : "s" }));
    await frame();
    const now = performance.now();
    times.push(now - last);
    last = now;
  }
  return times;
}"""


def written(trace: Path, folder: Path) -> tuple[Path, float, int]:
    """Return the page, the seconds that writing it took, and how many events the trace has."""
    page = folder / f"{trace.name}.html"
    command = [sys.executable, "-m", "tracehunch", "look", str(trace)]
    start = time.perf_counter()
    subprocess.run([*command, "-o", str(page)], check=True, capture_output=True)
    seconds = time.perf_counter() - start
    told = subprocess.run([*command, "--format", "json"], check=True, capture_output=True).stdout
    return page, seconds, json.loads(told)["trace"]["events"]


def opened(browser: Any, page: Path, rounds: int) -> tuple[list[float], list[float], str]:
    """Return seconds to open, milliseconds a frame while zooming, and how many events are shown."""
    seconds, frames, shown = [], [], ""
    for _ in range(rounds):
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        tab = context.new_page()
        start = time.perf_counter()
        tab.goto(page.as_uri())
        tab.wait_for_selector("#tl[data-ready]")
        seconds.append(time.perf_counter() - start)
        tab.locator("#tl-lanes").scroll_into_view_if_needed()
        frames += tab.evaluate(ZOOM)
        shown = tab.inner_text("#h-timeline .aside")
        context.close()
    return seconds, frames, shown


def main() -> None:
    """Print a row for each trace."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("traces", nargs="*", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    traces = args.traces or [trace for trace in TRACES if trace.is_file()]
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        sys.exit("no Chromium on this machine")
    print("| events | shown | file | write | open | frame while zooming: median, 95 % |")
    print("|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for trace in traces:
            page, seconds, events = written(trace, Path(folder))
            open_seconds, frames, shown = opened(browser, page, args.rounds)
            slow = statistics.quantiles(frames, n=20)[-1]
            print(
                f"| {events:,} | {shown.removesuffix(' events')} | {page.stat().st_size / 1024:,.0f} KiB "
                f"| {seconds:.1f} s | {statistics.median(open_seconds):.2f} s "
                f"| {statistics.median(frames):.1f} ms, {slow:.1f} ms |"
            )
        browser.close()


if __name__ == "__main__":
    main()
