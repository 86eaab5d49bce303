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
