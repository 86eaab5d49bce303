"""Programs that are compiled without a GPU: each function returns what a user's would."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  # as everybody writes it

ON_GPU = {"device": "cuda", "dtype": torch.bfloat16}


def geglu():
    gate, up, down = (torch.randn(*size, **ON_GPU) for size in ((2816, 1024), (2816, 1024), (1024, 2816)))

    @torch.no_grad()
    def mlp(x):
        return F.linear(F.gelu(F.linear(x, gate)) * F.linear(x, up), down)

    return mlp, (torch.randn(4096, 1024, **ON_GPU),)


def naive():
    q, k, v = (torch.randn(8, 16, 1024, 64, **ON_GPU) for _ in range(3))
    mask = torch.ones(1024, 1024, dtype=torch.bool, device="cuda")

    @torch.no_grad()
    def attention():
        scores = (q @ k.transpose(-1, -2) * 64**-0.5).masked_fill(mask, float("-inf"))
        return torch.softmax(scores, -1) @ v

    return attention


def by_hand():
    q, k, v = (torch.randn(2, 8, 256, 64, **ON_GPU) for _ in range(3))

    @torch.no_grad()
    def attention():
        return torch.matmul(torch.softmax(torch.matmul(q, k.transpose(-2, -1)) / 8.0, dim=-1), v)

    return attention


def matmul_add():
    a, b, c = (torch.randn(4096, 4096, **ON_GPU) for _ in range(3))
    return torch.no_grad()(lambda: a @ b + c)


def broken():
    def function(x):
        y = F.gelu(x) + 1
        torch._dynamo.graph_break()
        return F.silu(y) * 2

    return function, (torch.randn(256, 256, device="cuda"),)


def counts():
    class Counting(nn.Module):
        n = 0

        def forward(self, x):
            self.n += 1
            return F.gelu(x) * self.n

    return Counting(), (torch.randn(256, 256, device="cuda"),)


def trains():
    model = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 8)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.randn(32, 64, device="cuda")

    def step():
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.scaled_dot_product_attention(*[model[:2](x).view(1, 4, 32, 16)] * 3).mean()
        loss.backward()
        optimizer.step()

    return step


def compiled_inside():
    model = torch.compile(nn.Sequential(nn.Linear(64, 64), nn.GELU()).cuda())
    x = torch.randn(32, 64, device="cuda")
    return torch.no_grad()(lambda: model(x).relu())


def decides():
    def function(x):
        return x * 2 if x.sum() > 0 else x - 1

    return function, (torch.randn(256, 256, device="cuda"),)


def ends_in_composed_operations():
    """Return a training step each of whose branches ends in an operation that is composed of others."""
    up = [nn.Linear(16, 16, bias=False, device="cuda") for _ in range(4)]
    x, y = torch.randn(8, 16, device="cuda"), torch.randint(0, 16, (8,), device="cuda")
    slope = torch.full((1,), 0.25, device="cuda")

    def step():
        a, b, c, d = (one(x) for one in up)
        loss = F.cross_entropy(a, y) + F.relu6(b).sum() + F.prelu(c, slope).var()
        loss = loss + F.interpolate(d[None, None], scale_factor=2, mode="bilinear").sum()
        loss.backward()

    return step


def attends_in_a_module():
    """Return a training step whose attention is inside a function that a graph calls as a whole."""
    layer = nn.TransformerEncoderLayer(64, 2, 64, dropout=0.0, batch_first=True).cuda()
    x = torch.randn(2, 16, 64, device="cuda", requires_grad=True)
    return lambda: layer(x).sum().backward()


def steps_of_cells():
    first, second = nn.LSTMCell(16, 16).cuda(), nn.GRUCell(16, 16).cuda()
    x = torch.randn(4, 16, device="cuda", requires_grad=True)
    return lambda: second(x, first(x)[0]).sum().backward()


def attends_on_the_host():
    q, x = torch.randn(1, 2, 16, 16), torch.randn(16, 16, device="cuda")
    return torch.no_grad()(lambda: (F.scaled_dot_product_attention(q, key=q, value=q), x.sin()))


def logs():
    w = torch.randn(16, 16, device="cuda", requires_grad=True)

    def step():
        loss = w.sin().sum()
        loss.backward()
        return loss.item()

    return step


def draws():
    """Return a call of an operation of which no rule tells the results without data."""
    x = torch.rand(16, 8, device="cuda")
    return torch.no_grad()(lambda: torch._sample_dirichlet(x * 2) + 1)


def attends_to_three_lengths():
    layer = torch.compile(nn.MultiheadAttention(32, 2, batch_first=True, device="cuda"))
    lengths = [torch.randn(1, length, 32, device="cuda") for length in (8, 12, 20)]
    return torch.no_grad()(lambda: [layer(one, one, one, need_weights=False) for one in lengths])


def calls_what_is_compiled():
    """Return a function under a decorator that calls a function compiled elsewhere."""
    square = torch.compile(lambda x: x * x + 1)
    x = torch.randn(16, 16, device="cuda")
    return torch.no_grad()(lambda: square(x).cosh())


def has_a_mode_of_its_own():
    w = torch.randn(16, 16, device="cuda")
    return torch.no_grad()(torch.compile(lambda x: (x @ w).relu(), mode="max-autotune")), (w,)


def multiplies_in_fp8():
    a, b = (torch.ones(32, 32, device="cuda").to(torch.float8_e4m3fn) for _ in range(2))
    one = torch.ones((), device="cuda")
    scaled = {"scale_a": one, "scale_b": one, "out_dtype": torch.bfloat16}
    return torch.no_grad()(lambda: torch._scaled_mm(a, b.t(), **scaled).relu())


def has_constants():
    """Return a call with tensors that are made of lists on the GPU, and one that is moved there."""
    x, y = torch.randn(8, 3, device="cuda"), torch.randn(8, 4, device="cuda")

    def function():
        made = torch.tensor([1.0, 2.0, 3.0], device="cuda"), torch.as_tensor([0.5, 1.5, 2.5], device="cuda")
        moved = torch.tensor([1.0, 2.0, 3.0, 4.0]).to("cuda")
        return x * made[0] - made[1], y / moved

    return torch.no_grad()(function)


def of_wrong_sizes():
    x, w = torch.randn(8, 16, device="cuda"), torch.randn(17, 8, device="cuda")
    return lambda: torch.relu(x @ w)


def on_two_devices():
    x, y = torch.randn(8, device="cuda"), torch.randn(8)
    return lambda: x + y


def of_two_types():
    return nn.Linear(8, 8, device="cuda"), (torch.randn(8, 8, **ON_GPU),)


def whole_or_not_at_all():
    def function(x):
        print(x.shape)  # noqa: T201  # what it is refused for
        return x + 1

    return torch.compile(function, fullgraph=True), (torch.randn(8, device="cuda"),)


def returns_its_input():
    return torch.compile(lambda x: x), (torch.randn(8, device="cuda"),)
