"""LSTM, GRU and plain recurrent layers: on a GPU one call of cuDNN each (ATen/native/cudnn/RNN.cpp)."""

from __future__ import annotations

from typing import Any, Final

MODES: Final = {"rnn_relu": 0, "rnn_tanh": 1, "lstm": 2, "gru": 3}
"""cuDNN's numbers for kinds of layers."""


def recurrent(torch: Any) -> dict[str, Any]:
    """Return a replacement of each recurrent operation, by its name."""
    padded = {f"{kind}.input": _padded(torch, kind) for kind in MODES}
    packed = {f"{kind}.data": _packed(torch, kind) for kind in MODES}
    again = {
        "_pad_packed_sequence": _padded_again(torch),
        "_pack_padded_sequence_backward": _unpacked(torch),
    }
    return padded | packed | again


def _padded(torch: Any, kind: str) -> Any:
    def run(  # noqa: PLR0917  # as the schema has them
        input: Any, hx: Any, params: list[Any], has_biases: bool, num_layers: int, dropout: float,  # noqa: A002  # the name it has there
        train: bool, bidirectional: bool, batch_first: bool,
    ) -> Any:  # fmt: skip
        settings = (has_biases, num_layers, dropout, train, bidirectional, batch_first)
        return _cudnn(torch, kind, (input, []), hx, params, settings)

    return run


def _packed(torch: Any, kind: str) -> Any:
    def run(  # noqa: PLR0917  # as the schema has them
        data: Any, batch_sizes: Any, hx: Any, params: list[Any], has_biases: bool, num_layers: int,
        dropout: float, train: bool, bidirectional: bool,
    ) -> Any:  # fmt: skip
        settings = (has_biases, num_layers, dropout, train, bidirectional, False)
        return _cudnn(torch, kind, (data, batch_sizes.tolist()), hx, params, settings)

    return run


def _padded_again(torch: Any) -> Any:
    """Copy stretches of steps with as many sequences each to a tensor that is filled with the padding."""

    def run(data: Any, batch_sizes: Any, batch_first: bool, padding_value: float, total_length: int) -> Any:
        sizes = batch_sizes.tolist()
        shape = [total_length if total_length > 0 else len(sizes), sizes[0], *data.shape[1:]]
        made = torch.full(shape, padding_value, dtype=data.dtype, device=data.device)
        begin = taken = 0
        for at in range(1, len(sizes) + 1):
            rows = sizes[begin]
            if at < len(sizes) and sizes[at] == rows:
                continue
            part = data.narrow(0, taken, rows * (at - begin)).view(at - begin, rows, *data.shape[1:])
            made.narrow(0, begin, at - begin).narrow(1, 0, rows).copy_(part)
            begin, taken = at, taken + rows * (at - begin)
        lengths = [sum(rows > row for rows in sizes) for row in range(sizes[0])]
        return made.transpose(0, 1) if batch_first else made, torch.tensor(lengths, device="cpu")

    return run


def _unpacked(torch: Any) -> Any:
    """Copy the gradient of each step's sequences into zeros."""

    def run(grad: Any, input_size: list[int], batch_sizes: Any, batch_first: bool) -> Any:
        rows, steps, *rest = input_size if batch_first else (input_size[1], input_size[0], *input_size[2:])
        made = torch.zeros((steps, rows, *rest), dtype=grad.dtype, device=grad.device)
        taken = 0
        for at, count in enumerate(batch_sizes.tolist()):
            made[at].narrow(0, 0, count).copy_(grad.narrow(0, taken, count))
            taken += count
        return made.transpose(0, 1) if batch_first else made

    return run


def _cudnn(torch: Any, kind: str, *given: Any) -> Any:
    (x, sizes), hx, params, settings = given
    has_biases, layers, dropout, train, bidirectional, batch_first = settings
    state, cell = (hx[0], hx[1]) if kind == "lstm" else (hx, None)
    aten = torch.ops.aten
    each = 4 if has_biases else 2
    directions = 2 if bidirectional else 1
    projected = kind == "lstm" and len(params) == (each + 1) * layers * directions
    hidden = params[1].shape[0] // 4 if projected else state.shape[2]
    # made once a process and kept, as in C++
    drop = torch.empty(0, dtype=torch.uint8, device=x.device) if dropout > 0 and train else None
    flat = torch.empty(sum(one.numel() for one in params), dtype=x.dtype, device=x.device)
    made = aten._cudnn_rnn.default(  # noqa: SLF001  # an operator's name
        x.contiguous(), params, each + projected, flat, state.contiguous(),
        None if cell is None else cell.contiguous(), MODES[kind], hidden, state.shape[2] if projected else 0,
        layers, batch_first, dropout, train, bidirectional, sizes, drop,
    )  # fmt: skip
    return made[:3] if kind == "lstm" else made[:2]
