"""The pages around the report: what is measured, what failed, and the bar. No script is in them."""

from __future__ import annotations

import time
from base64 import b64encode
from hashlib import sha256
from html import escape
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tracehunch.space.server.result import Result
    from tracehunch.space.server.runs import Runs

_STYLE: Final = """
:root{color-scheme:light dark;font:15px/1.5 system-ui,sans-serif}
body{margin:0;min-height:100vh;display:flex;flex-direction:column}
header,main{padding:.5rem 1rem}
header{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;align-items:center;border-bottom:1px solid #8886}
header p,header form{margin:0}
header .grow{flex:1 1 20rem}
h1{font-size:1.3rem}
.note{font-weight:600}
button{font:inherit;padding:.2rem .8rem}
pre{overflow-x:auto;border:1px solid #8886;padding:.6rem;font-size:13px}
iframe{flex:1;border:0;width:100%;min-height:40rem}
"""

_FRAMED_BY: Final = "frame-ancestors 'self' https://huggingface.co"
"""Who may show an answer in a frame: the Space's page on the Hub, and the pages here."""

FILE_POLICY: Final = f"default-src 'none'; {_FRAMED_BY}"
PAGE_POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}'; "
    f"frame-src 'self'; form-action 'self'; base-uri 'none'; {_FRAMED_BY}"
)
REPORT_POLICY: Final = f"sandbox allow-scripts allow-downloads allow-modals allow-popups; {_FRAMED_BY}"
"""The report brings a policy of its own. In a sandbox it is of no origin, so it cannot start runs."""

_REFRESH_S: Final = 3
_AGAIN: Final = '<form method="post" action="/run"><button>Run again</button></form>'
_ADVICE: Final = (
    "What it printed is below, and in the Space's logs. Short of memory: take a smaller --batch or --seq in "
    "settings.json, or larger hardware under Settings. A driver too old for this build of PyTorch: write the "
    "Space again with another --cuda."
)


def current(runs: Runs) -> bytes:
    """Return the page of what is going on: a run, a failure, or the newest report."""
    if runs.status == "failed":
        return _failed(runs)
    if runs.status == "done" and runs.result is not None:
        return _report(runs, runs.result)
    return _running(runs)


def refused(why: str) -> bytes:
    """Return the page of a request that is not granted."""
    return _page("Not now", f'<main><p class="note">{escape(why)}</p><p><a href="/">Back</a></p></main>')


def _running(runs: Runs) -> bytes:
    seconds = time.monotonic() - runs.began
    body = (
        f"<main><h1>Measuring attention on this hardware</h1><p>{seconds:.0f} s so far. This page refreshes "
        f"by itself, and shows the report when it is done.</p>{_before(runs)}{_printed(runs)}</main>"
    )
    return _page("Measuring", body, refresh_s=_REFRESH_S)


def _failed(runs: Runs) -> bytes:
    options = " ".join(runs.settings.options) or "none, so the defaults"
    body = (
        f'<main><h1>The run failed</h1><p class="note">{escape(runs.error)}</p><p>{escape(_ADVICE)}</p>'
        f"<p>Options of the run: <code>{escape(options)}</code></p>"
        f"{_AGAIN}{_before(runs)}{_printed(runs)}</main>"
    )
    return _page("The run failed", body)


def _report(runs: Runs, result: Result) -> bytes:
    links = '<a href="/report.json">report.json</a> · <a href="/traces.zip">traces.zip</a>'
    body = (
        f'<header><p class="grow">{escape(result.fingerprint)}<br>measured {escape(result.when)}</p>'
        f'{_no_gpu(runs, result)}<p><a href="/report.html" target="_blank">full page</a> · {links}</p>'
        f'{_AGAIN}</header><iframe src="/report.html" title="The report"></iframe>'
    )
    return _page(f"Attention on {result.machine}", body)


def _no_gpu(runs: Runs, result: Result) -> str:
    if result.on_gpu or not runs.settings.gpu:
        return ""
    return (
        f'<p class="note">No GPU was found: choose {escape(runs.settings.hardware)} under Settings. '
        "Where it is chosen, its driver may be too old for this build of PyTorch.</p>"
    )


def _before(runs: Runs) -> str:
    if runs.result is None:
        return ""
    return f'<p><a href="/report.html">The report of the last good run</a>, {escape(runs.result.when)}</p>'


def _printed(runs: Runs) -> str:
    return f"<pre>{escape(chr(10).join(tuple(runs.lines))) or 'nothing printed yet'}</pre>"


def _page(title: str, body: str, *, refresh_s: int = 0) -> bytes:
    """Return a page; `body` is HTML already."""
    again = f'<meta http-equiv="refresh" content="{refresh_s}">' if refresh_s else ""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">{again}'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>{body}</body></html>"
    ).encode()
