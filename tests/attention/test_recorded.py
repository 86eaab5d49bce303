import hashlib
import tomllib

from tracehunch.attention import VARIANTS
from tracehunch.attention.recorded import recording


def test_every_variant_is_recorded_and_the_files_are_as_the_index_says():
    traces = recording().traces
    assert list(traces) == [variant.name for variant in VARIANTS]
    index = tomllib.loads((traces["naive"].parent / "index.toml").read_text())
    for name, path in traces.items():
        assert hashlib.sha256(path.read_bytes()).hexdigest() == index["traces"][name]


def test_the_recording_says_what_it_was_made_on():
    assert str(recording().device) == "NVIDIA H200, torch 2.11.0+cu130"
    assert recording().device.recorded
    assert str(recording().workload) == "(8,16,1024,64) bfloat16 causal"
    assert recording().steps == 3
