"""What a file will take is foreseen from its size, and what will not fit is not tried."""

import gzip

from tracehunch.engines.memory import budget_bytes, foreseen_bytes, refusal
from tracehunch.trace.discover import Source, discover

MIB = 1 << 20


def test_packed_files_count_by_their_text(tmp_path):
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(bytes(range(256)) * 4096 * 40, 1))
    packed = Source(str(path), "a", path.stat().st_size)
    plain = Source("/none/a.json", "a", 40 * MIB)
    url = Source("s3://b/a.json.gz", "a", 40 * MIB)
    base = foreseen_bytes(Source("/none/a.json", "a", 1))
    assert foreseen_bytes(plain) - base > 20 * MIB
    assert foreseen_bytes(url) - base > 10 * (foreseen_bytes(plain) - base)
    assert foreseen_bytes(packed) > base


def test_what_is_foreseen_covers_what_was_stated_of_a_recorded_trace(h200):
    [source] = discover([h200 / "ranks" / "ddp" / "rank0.json.gz"]).sources
    text = len(gzip.decompress(open(source.place, "rb").read()))  # noqa: PTH123, SIM115  # a string, read once
    assert abs(foreseen_bytes(source) - foreseen_bytes(Source("/none/a.json", "a", text))) <= 1


def test_a_file_that_will_not_fit_is_refused_with_what_it_takes(h200):
    [source] = discover([h200 / "ranks" / "ddp" / "rank0.json.gz"]).sources
    one = refusal(source, 10 * MIB)
    assert one.what.startswith("reading it takes about 1")
    assert "--max-memory" in one.why
    assert refusal(source, 1 << 40) is None
    assert refusal(source, None) is None
    assert refusal(Source("s3://b/a.json", "a", 1 << 40), MIB) is None  # its worker will see


def test_the_budget_is_what_the_user_says_or_less_than_is_free():
    assert budget_bytes(5) == 5
    assert (budget_bytes(None) or 1) > 0
