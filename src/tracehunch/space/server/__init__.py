"""The server of a Space: measures attention on the hardware it runs on, and serves the report.

Python's standard library is enough for a handful of small files and one run at a time: what is not installed
needs no pin, and leaves the processor to the measurement. The one port it serves is all it has of a network.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import tempfile
import threading
from pathlib import Path
from typing import Final

from tracehunch.space.server.http import Server
from tracehunch.space.server.runs import Runs
from tracehunch.space.server.settings import Settings

PORT: Final = 7860
"""Where a Space is expected to listen, unless its README says another."""

_LOOKS_S: Final = 1.0
"""How often it looks whether it was told to stop."""


def main(home: Path) -> None:
    """Serve until told to stop; the first run starts at once.

    ``home``: the folder of ``settings.json`` and, where it comes with the Space, of tracehunch. The variable
    ``PORT`` names another port, 0 any free one.
    """
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(asctime)s %(message)s")
    told = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: told.set())
    with tempfile.TemporaryDirectory(prefix="tracehunch-space-", ignore_cleanup_errors=True) as scratch:
        runs = Runs(Settings.read(home), Path(scratch))
        with Server(int(os.environ.get("PORT", PORT)), runs) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            logging.getLogger("space").info("serving on port %d", server.server_address[1])
            runs.start()
            while not told.wait(_LOOKS_S):
                pass  # a signal that the system hands to another thread does not wake this one
            logging.getLogger("space").info("stopping")
            runs.stop()
            server.shutdown()
