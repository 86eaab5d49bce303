"""The dispatcher on a CPU: random calls, asked of PyTorch and executed, held against predictions."""

import contextlib
import random
import warnings
from collections import Counter
from dataclasses import replace

import pytest

from tracehunch.predict.environment import BACKENDS, environment
from tracehunch.predict.sdpa import SdpaCall, TensorSpec, predict_sdpa

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(
    not torch.__version__.startswith("2.13"), reason="the rules on CPUs are those of torch 2.13"
)

N_CALLS = 3000
ENV = environment(device="cpu", torch="2.13") if torch.__version__.startswith("2.13") else None
PICKED = {0: "math", 1: "flash", 2: "efficient", 3: "cudnn", 4: "overrideable"}
MEMBERS = {"flash": "FLASH_ATTENTION", "efficient": "EFFICIENT_ATTENTION", "math": "MATH"}
MEMBERS |= {"cudnn": "CUDNN_ATTENTION", "overrideable": "OVERRIDEABLE"}
ON = (True,)
FLAGS = {"flash": "flash", "efficient": "mem_efficient", "math": "math", "cudnn": "cudnn"}
FLOATS = [torch.float32] * 5 + [torch.bfloat16, torch.float16, torch.float64] * 2
PRODUCTS = ("mat1 and mat2 shapes cannot be multiplied", "Expected size for first two dimensions")


def spec(tensor):
    return TensorSpec(
        shape=tuple(tensor.shape),
        stride=tensor.stride(),
        dtype=str(tensor.dtype).removeprefix("torch."),
        storage_offset=tensor.storage_offset(),
        requires_grad=tensor.requires_grad,
    )


class Made:
    """A random call: valid as a rule, odd in every way that the dispatcher looks at."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.q, self.k, self.v = self.inputs()
        self.mask = self.make_mask() if rng.random() < 0.45 else None
        self.dropout = self.pick({0.0: 9, 0.1: 2, 1.0: 0.3, -0.1: 0.1, 1.5: 0.1})
        self.is_causal = rng.random() < 0.3
        self.enable_gqa = rng.random() < 0.3
        if rng.random() < 0.3:
            for tensor in rng.sample([self.q, self.k, self.v], rng.randint(1, 3)):
                tensor.requires_grad_()
        self.pinned, self.enabled = (), {}
        if rng.random() < 0.06:
            self.pinned = tuple(rng.sample(BACKENDS, rng.randint(1, 3)))
        elif rng.random() < 0.05:
            self.enabled = {backend: rng.random() < 0.5 for backend in FLAGS}

    def pick(self, weights):
        return self.rng.choices(list(weights), list(weights.values()))[0]

    def inputs(self):
        rng, size = self.rng, {1: 3, 2: 3, 3: 2, 4: 3, 8: 2, 0: 0.2}
        ndim = self.pick({4: 80, 3: 8, 2: 5, 5: 5, 1: 2})
        batch = [self.pick(size) for _ in range(max(ndim - 3, 0))]
        heads = rng.choice([1, 2, 3, 4, 8])
        kv_heads = rng.choices([heads, 1, 2, max(heads // 2, 1), 3], [6, 2, 1, 2, 1])[0]
        v_heads = kv_heads if rng.random() < 0.85 else rng.choice([1, 2, 4])
        length = self.pick({1: 3, 2: 2, 5: 2, 8: 3, 16: 3, 0: 0.3})
        keys = length if rng.random() < 0.5 else self.pick({1: 1, 3: 2, 8: 2, 0: 0.3})
        width = self.pick({1: 1, 8: 4, 31: 2, 64: 3, 0: 0.1})
        v_width = width if rng.random() < 0.8 else rng.choice([8, 1])
        k_batch = batch if rng.random() < 0.94 else [rng.choice([1, 2, size]) for size in batch]
        shapes = [
            (*batch, heads, length, width),
            (*k_batch, kv_heads, keys, width + (rng.random() < 0.03)),
            (*k_batch, v_heads, keys + (rng.random() < 0.015), v_width),
        ]
        dtype = rng.choice(FLOATS)
        dtypes = [dtype if rng.random() < 0.99 else rng.choice(FLOATS) for _ in shapes]
        layout = self.pick(dict(zip(range(5), (6, 2, 2, 1, 1), strict=True)))
        one_layout = rng.random() < 0.7
        tensors = [
            self.tensor(shape[-ndim:], dtype, layout if one_layout else rng.randrange(5))
            for shape, dtype in zip(shapes, dtypes, strict=True)
        ]
        if ndim > 2 and rng.random() < 0.03 and tensors[1].shape[0]:
            tensors[1] = tensors[1][0]
        return tensors

    def tensor(self, shape, dtype, layout):
        """Contiguous, two dimensions transposed, the last two transposed, expanded, or cut out."""
        rng = self.rng
        if layout == 1 and len(shape) > 2:
            *outer, second, third, last = shape
            return torch.zeros(*outer, third, second, last, dtype=dtype).transpose(-3, -2)
        if layout == 2 and len(shape) > 1:
            *outer, second, last = shape
            return torch.zeros(*outer, last, second, dtype=dtype).transpose(-1, -2)
        if layout == 3 and shape:
            at = rng.randrange(len(shape))
            one = [min(size, 1) if i == at else size for i, size in enumerate(shape)]
            return torch.zeros(one, dtype=dtype).expand(shape)
        if layout == 4 and shape:
            cut = rng.randint(1, 3)
            return torch.zeros(*shape[:-1], shape[-1] + cut, dtype=dtype)[..., cut:]
        return torch.zeros(shape, dtype=dtype)

    def make_mask(self):
        rng = self.rng
        keys = self.k.shape[-2] if self.k.ndim > 1 else 1
        full = (*self.q.shape[:-1], keys)
        shape = list(full)
        if rng.random() < 0.5:
            ndim = self.pick({2: 5, 3: 4, 4: 6, 5: 1, 1: 0.5, 0: 0.2})
            shape = [1] * (ndim - len(full)) + list(full[len(full) - min(ndim, len(full)) :])
            shape = [self.pick({size: 10, 1: 4, size + 1: 0.5}) for size in shape]
        own = self.q.dtype
        kinds = [torch.bool, own, torch.float32, torch.float16, torch.int64, torch.float64]
        dtype = rng.choices(kinds, [6, 6, 3, 0.4, 0.3, 0.3])[0]
        mask = self.tensor(tuple(shape), dtype, self.pick({0: 8, 2: 2, 3: 1, 4: 1}))
        grad = dtype.is_floating_point and rng.random() < 0.1
        return mask.detach().requires_grad_() if grad else mask

    @property
    def arguments(self):
        return (self.q, self.k, self.v, self.mask, self.dropout, self.is_causal)

    @property
    def call(self) -> SdpaCall:
        return SdpaCall(
            q=spec(self.q),
            k=spec(self.k),
            v=spec(self.v),
            mask=None if self.mask is None else spec(self.mask),
            dropout=self.dropout,
            is_causal=self.is_causal,
            enable_gqa=self.enable_gqa,
        )

    @contextlib.contextmanager
    def settings(self):
        from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: PLC0415  # torch may be absent

        with contextlib.ExitStack() as stack:
            if self.pinned:
                stack.enter_context(sdpa_kernel([getattr(SDPBackend, MEMBERS[one]) for one in self.pinned]))
            for backend, on in self.enabled.items():
                set_flag = getattr(torch._C, f"_set_sdp_use_{FLAGS[backend]}")
                set_flag(on)
                stack.callback(set_flag, *ON)
            yield


def first_line(function, made):
    """A function's result, or the first line of its error."""
    try:
        with made.settings():
            return function(*made.arguments, enable_gqa=made.enable_gqa), None
    except (RuntimeError, IndexError) as error:
        return None, str(error).split("\n", maxsplit=1)[0]


@pytest.fixture(scope="module")
def asked():
    """Random calls with what PyTorch picked (None: it raised) and the error of executing them."""
    rng = random.Random(20260)  # noqa: S311  # a seed, no secret
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(N_CALLS):
            made = Made(rng)
            picked, refused = first_line(torch._fused_sdp_choice, made)
            _, error = first_line(torch.nn.functional.scaled_dot_product_attention, made)
            env = replace(ENV, pinned=made.pinned, enabled=made.enabled)
            found.append((made.call, env, picked, refused, error))
    torch.set_num_threads(threads)
    return found


def test_the_choice_is_pytorchs(asked):
    wrong, told = [], Counter()
    for call, env, picked, refused, _ in asked:
        chosen = predict_sdpa(call, env).chosen
        if picked is None:
            told["refused"] += 1
            right = chosen == "error" or "imension" in refused  # a mask without rows
        else:
            told[PICKED[picked]] += 1
            right = chosen == PICKED[picked]
        if not right:
            wrong.append((call, env, picked, refused, chosen))
    assert wrong == []
    assert len(asked) >= 2000
    assert min(told[name] for name in ("math", "flash", "refused")) > 100


def test_the_errors_are_pytorchs(asked):
    wrong = []
    for call, env, _, _, error in asked:
        raises = predict_sdpa(call, env).raises
        of_products = error and raises and error.startswith(PRODUCTS) and raises.startswith(PRODUCTS)
        if raises != error and not of_products:
            wrong.append((call, env, error, raises))
    assert wrong == []
    assert sum(error is not None for *_, error in asked) > 500


def test_what_runs_is_what_the_profiler_shows():
    sizes = {"plain": (4, 4), "no query": (0, 4), "no key": (4, 0)}
    seen = {}
    for name, (length, keys) in sizes.items():
        q, k = torch.zeros(1, 2, length, 8), torch.zeros(1, 2, keys, 8)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            torch.nn.functional.scaled_dot_product_attention(q, k, k)
        ops = {event.name for event in profile.events()}
        seen[name] = "aten::_scaled_dot_product_flash_attention_for_cpu" in ops
        call = SdpaCall(spec(q), spec(k), spec(k))
        assert (predict_sdpa(call, ENV).ran == "flash") == seen[name]
    assert seen == {"plain": True, "no query": False, "no key": False}
