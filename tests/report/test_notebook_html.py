from tracehunch.guess import Guess
from tracehunch.judge import examine
from tracehunch.report import finding_texts, kernel_rows, notebook_html
from tracehunch.report.summary import Selection
from tracehunch.trace import read
from tracehunch.verdict import Verdict


def seen(path, claims=None):
    return examine(read(path), [Guess.of(claims, scope="attn_fwd")] if claims else [])


def test_it_shows_verdict_findings_and_tables(h200):
    look = seen(h200 / "seeds/naive.json.gz", {"kernels": 5, "copies": 0, "flops": "> 1"})
    html = notebook_html.look_html(look, "my trace")
    for text in ("my trace", "1 held, 1 surprise, 1 cannot tell", "guessed 0 (user), saw 1", "1,063.5 us"):
        assert text in html
    for finding in finding_texts.findings(look, Selection()):
        assert finding.id in html
        assert finding.summary.replace("'", "&#x27;") in html
    for row in kernel_rows.kernel_tables(look, Selection())[0].rows:
        assert f">{row.time}<" in html


def test_what_did_not_hold_is_open_and_what_held_is_folded(h200):
    broken = notebook_html.look_html(seen(h200 / "seeds/naive.json.gz", {"kernels": 5, "copies": 0}))
    held = notebook_html.look_html(seen(h200 / "seeds/naive.json.gz", {"kernels": 5}))
    assert broken.index("guessed 0") < broken.index("<details><summary>✓ held: 1")
    assert "<details open><summary>✓ held: 1" in held


def test_a_trace_of_a_cpu_has_its_ops(cpu):
    path = min(cpu.glob("*.json.gz"))
    html = notebook_html.look_html(seen(path))
    assert "by CPU time in themselves" in html
    assert "Kernels in" not in html
    assert "Verdict" not in html


def test_nothing_in_it_loads_runs_or_paints(h200):
    html = notebook_html.look_html(seen(h200 / "seeds/naive.json.gz", {"copies": 0}))
    for word in ("<script", "<style", "http", "src=", "href", "onclick", "background", " color:", "#fff"):
        assert word not in html


def test_nothing_claimed_is_said():
    assert "nothing was claimed" in notebook_html.verdict_html(Verdict())
