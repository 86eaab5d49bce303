"""Kernels of this very Python, and a person who types at their prompts."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

KERNEL = "tracehunch-test"
_TIMEOUT_S = 600


class Typist:
    """Runs cells in a kernel, and types the answers to its prompts."""

    def __init__(self, client: Any, journal: Path) -> None:
        self._client = client
        self.journal = journal
        self.prompts: list[str] = []

    def run(self, code: str, answers: Sequence[str] = ()) -> list[dict[str, Any]]:
        """Return what a cell showed, as nbformat has it; without ``answers`` the frontend takes no input."""
        left = iter(answers)
        self.prompts = []
        shown: list[dict[str, Any]] = []

        def on_input(message: dict[str, Any]) -> None:
            self.prompts.append(message["content"]["prompt"])
            self._client.input(next(left))

        def on_output(message: dict[str, Any]) -> None:
            kind, content = message["header"]["msg_type"], message["content"]
            if kind == "stream" and shown and shown[-1].get("name") == content["name"]:
                shown[-1]["text"] += content["text"]  # a busy kernel sends a line in pieces
            elif kind in {"stream", "display_data", "execute_result", "error"}:
                shown.append({"output_type": kind, **content})

        self.reply = self._client.execute_interactive(
            code,
            allow_stdin=bool(answers),
            timeout=_TIMEOUT_S,
            output_hook=on_output,
            stdin_hook=on_input,
        )["content"]
        return shown


@pytest.fixture(scope="session")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of a kernel that runs this Python, whatever kernels are installed; its journal is a test's."""
    folder = tmp_path_factory.mktemp("jupyter")
    made = folder / "kernels" / KERNEL / "kernel.json"
    made.parent.mkdir(parents=True)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    made.write_text(json.dumps({"argv": command, "display_name": "test", "language": "python"}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PATH", str(folder))
        patch.setenv("TRACEHUNCH_JOURNAL", str(folder / "journal.jsonl"))
        yield KERNEL


@pytest.fixture
def typist(running: Typist) -> Typist:
    """The running kernel; ``x`` is what tests work on."""
    running.run("x = torch.ones(8, 8)")
    return running


@pytest.fixture(scope="session")
def running(kernel: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Typist]:
    """One running kernel with the magic loaded."""
    pytest.importorskip("torch")
    pytest.importorskip("ipykernel")
    manager = pytest.importorskip("jupyter_client").KernelManager(kernel_name=kernel)
    manager.start_kernel(cwd=str(tmp_path_factory.mktemp("work")))
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=_TIMEOUT_S)
    found = Typist(client, tmp_path_factory.getbasetemp())
    found.run("%load_ext tracehunch\nimport torch")
    yield found
    client.stop_channels()
    manager.shutdown_kernel(now=True)
