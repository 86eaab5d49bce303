"""What a hunch.toml knows of foreseen findings: by op and count where a trace names both alike."""

from tracehunch.guess import Guess
from tracehunch.judge.known import is_known
from tracehunch.predict.program.known import known_of
from tracehunch.verdict import Finding


def seen(name, scope, subject, per_call):
    return Finding(
        id=name, scope=scope, severity="warning", confidence="high", time_at_stake_us=1.0, summary="",
        cause="", fix="", evidence=(), subject=subject, per_call=per_call,
    )  # fmt: skip


def test_the_same_is_known_and_more_or_another_op_is_not(make, guess):
    big = ((64, 1024, 1024), "bf16")
    mask = ((1024, 1024), "bool")
    fill = make("aten::masked_fill", big, mask, out=[big], scopes=("forward", "attn"))
    item = make("aten::_local_scalar_dense", ((), "bf16"), line="train.py:5")
    known = Guess((), known=known_of(guess(fill, fill, item), "step"))
    for scope in ("step", "forward", "attn"):
        assert is_known(seen("hidden-copy", scope, "aten::masked_fill", 2.0), known)
    assert not is_known(seen("hidden-copy", "attn", "aten::masked_fill", 3.0), known)
    assert not is_known(seen("hidden-copy", "attn", "aten::reshape", 1.0), known)
    assert not is_known(seen("hidden-copy", "backward", "aten::masked_fill", 2.0), known)
    assert is_known(seen("sync-stall", "step", "aten::item", 1.0), known)
    assert not is_known(seen("sync-stall", "step", "aten::item", 2.0), known)


def test_a_host_that_is_behind_is_known_however_many_gaps_there_are(make, guess):
    small = make("aten::neg", ((64,), "bf16"), out=[((64,), "bf16")])
    known = Guess((), known=known_of(guess(*[small] * 40), "step"))
    assert is_known(seen("overhead-bound", "step", "", 39.0), known)
    assert not known_of(guess(make("aten::view", ((64,), "bf16"), out=[((64,), "bf16")])), "step")
