"""What happens to each call below autograd: it is run on tensors without data, and noted."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from tracehunch.capture.program.accumulation import Accumulation
from tracehunch.capture.program.attention import pinned_backends
from tracehunch.capture.program.chance import Chance
from tracehunch.capture.program.checks import passing
from tracehunch.capture.program.composites import KERNELS
from tracehunch.capture.program.known import UNKNOWN
from tracehunch.capture.program.pinning import Pinned
from tracehunch.capture.program.regenerated import Regenerated
from tracehunch.capture.program.results import into_outputs, otherwise, results
from tracehunch.capture.program.strangers import Strangers
from tracehunch.capture.program.tensors import Arguments, flat
from tracehunch.capture.program.unwatched import Unwatched
from tracehunch.capture.program.written import Written

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracehunch.capture.program.known import Known
    from tracehunch.capture.program.tape import Tape

REMEDY: Final = "record with values (--values): the program then runs for real on the CPU"

_NO_FAKE: Final = "no fake impl registered"  # what torch.library says of an operation of its own
_WITHOUT: Final = "leave it out of what is guessed, or put in its place what PyTorch can tell the shape of"
_REGISTER: Final = "register a fake kernel for it with torch.library.register_fake"


class Dispatch:
    """Called with each operator and its arguments; returns what it returns.

    `instead`: what is done in the place of an operation, by its name. `everywhere`: tensors that are met on
    the CPU are taken as on the GPU. `reached_gpu`: something was put there. `lenient` while a number may be
    returned that is not known: `unknown` then says whether the last was.
    """

    def __init__(self, torch: Any, tape: Tape, known: Known) -> None:
        from torch._subclasses.fake_tensor import (  # noqa: PLC0415  # an optional dependency
            DataDependentOutputException,
            DynamicOutputShapeException,
            FakeTensor,
            FakeTensorMode,
            UnsupportedOperatorException,
        )

        self.torch = torch
        self.tape = tape
        self.known = known
        self.accumulation = Accumulation(torch)
        self.unwatched = Unwatched(torch, tape, self.accumulation)
        self.chance = Chance(torch, tape, known)
        self.regenerated = Regenerated(torch, self._unnoted, self._noted)
        self.pinned = Pinned(torch)
        self.written = Written(torch, self._single_call)
        self.instead: dict[str, Callable[..., Any]] = {}
        self.everywhere = False
        self.reached_gpu = False
        self.lenient = False
        self.unknown = False
        self._strangers = Strangers(torch, FakeTensor, known)
        self._depends = (DataDependentOutputException, DynamicOutputShapeException)
        self._without_data = FakeTensorMode
        self._fake_key = torch._C._TorchDispatchModeKey.FAKE  # noqa: SLF001  # torch's name for such modes
        self._unsupported = UnsupportedOperatorException
        self._number = torch.ops.aten._local_scalar_dense.default  # noqa: SLF001  # an operator's name
        aten = torch.ops.aten
        self._to = aten._to_copy.default  # noqa: SLF001  # an operator's name
        self._indexing = {aten.index.Tensor, aten.index_put.default, aten.index_put_.default}
        self._whole = (torch.int64, torch.int32)
        self._pack = aten._pack_padded_sequence.default  # noqa: SLF001  # as above
        self._clone = torch.ops.aten.clone.default
        self._attending = {
            aten._scaled_dot_product_flash_attention.default,  # noqa: SLF001  # as above
            aten._efficient_attention_forward.default,  # noqa: SLF001  # as above
        }
        self._close, self._equal = aten.allclose.default, aten.equal.default
        self._results = results(torch)
        self._otherwise = otherwise(torch)
        self._single = {f"aten::{name}" for name in KERNELS}
        known.begin(FakeTensor)

    @property
    def remedy(self) -> str:
        """What would tell a value that is not known."""
        if not self.known.everything:
            return REMEDY
        return (
            f"the CPU cannot do {self.known.lost}, from where on values are unknown"
            if self.known.lost
            else ""
        )

    def __call__(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], mode: Any) -> Any:
        """Run one call and note it."""
        if not hasattr(func, "_schema"):
            return self._higher(func, args, kwargs)
        if func.namespace == "profiler":
            return self._annotation(func, args, kwargs)
        if func.namespace in ("prim", "prims"):
            return func(*args, **kwargs)
        if func is self._close:
            with mode:
                flag = self.torch.ops.aten.isclose.default.decompose(*args, **kwargs).all()
            return bool(self._single_call(self._number, (flag,), {}))
        composition = self._composition(func, args) if self.torch.is_inference_mode_enabled() else None
        if composition is not None:
            with mode:
                return composition(*args, **kwargs)
        return self._single_call(func, args, kwargs)

    def _single_call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if kwargs.get("generator") is not None:
            kwargs = {**kwargs, "generator": None}  # none of a GPU is there
        pin = kwargs.get("pin_memory")
        if pin:
            kwargs = {**kwargs, "pin_memory": None}  # not without a GPU
        if self.everywhere:
            args, kwargs = self._strangers.taken_in(func, args, kwargs)
        again = self.regenerated.instead(func, args, kwargs) or self.written.instead(func, args, kwargs)
        if again is not None:
            return again[0]
        if self.accumulation.in_place(func, args, kwargs):
            func = self.torch.ops.aten.add_.Tensor
        args = self._with_indices_there(func, args)
        func, args = self.unwatched.instead(func, args)
        arguments = Arguments(func, args, kwargs, self.torch.is_tensor)
        if func is self._number:
            self.tape.note(func, arguments, None)
            return self._scalar(args[0])
        made = self._run(func, args, kwargs, arguments)
        outputs = list(flat(made, self.torch.is_tensor))
        if pin:
            self.pinned.mark(outputs)
        if self.pinned.at_an_end(func, arguments.tensors, outputs, arguments.options):
            arguments.note("pinned", value=True)
        if func is self._clone and args[0].is_conj():
            arguments.note("conjugated", value=True)
        pinned = pinned_backends(self.torch) if func in self._attending else None
        self.tape.note(self.unwatched.noted(func), arguments, made, pinned)
        self.accumulation.made(outputs)
        self.regenerated.follow(func, arguments, outputs)
        self.reached_gpu = self.reached_gpu or self._arrives(arguments.tensors, outputs, kwargs.get("device"))
        return made

    def _with_indices_there(self, func: Any, args: Any) -> Any:
        """Return the arguments with indices on the CPU moved to a tensor of the GPU, as indexing does."""
        if func not in self._indexing or args[0].device.type != "cuda":
            return args
        moved = [
            self._single_call(self._to, (one,), {"device": args[0].device})
            if one is not None and one.device.type == "cpu" and one.dtype in self._whole
            else one
            for one in args[1]
        ]
        return (args[0], moved, *args[2:])

    def _noted(self, func: Any, args: tuple[Any, ...]) -> Any:
        return self._single_call(func, args, {})

    def _unnoted(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        arguments = Arguments(func, args, kwargs, self.torch.is_tensor)
        made = self._run(func, args, kwargs, arguments)
        self.accumulation.made(flat(made, self.torch.is_tensor))
        return made

    @staticmethod
    def _arrives(tensors: list[Any], outputs: list[Any], device: Any) -> bool:
        """Whether a call puts something on the GPU; what is on `meta` counts as there, but was not put."""
        if not any(one.device.type == "cuda" for one in outputs):
            return False
        if device is not None:
            return bool(device.type == "cuda")
        return not any(one.device.type == "cuda" for one in tensors)

    def _higher(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run an operation that takes functions, as flex_attention; it is noted as one call."""
        name, rules = func.name(), func.python_key_table
        without_data = rules.get(self._without_data)
        if without_data is None:
            raise self.tape.stop(f"nothing is known of {name} without a compiler")
        ours = type(self.torch._C._get_dispatch_mode(self._fake_key))  # noqa: SLF001  # rules go by its class
        with patch.dict(rules, {ours: without_data}):
            made = func(*args, **kwargs)
        tensors = list(flat((args, kwargs), self.torch.is_tensor))
        self.tape.note_named(f"higher_order::{name}", tensors, made)
        self.tape.obstacle(f"{name} is recorded as one call: what it runs depends on its compilation")
        return made

    def _composition(self, func: Any, args: Any) -> Callable[..., Any] | None:
        """Return what an operation is made of, on the GPU or off it; it gets here whole in inference mode."""
        name = func.name()
        found = self.instead.get(name.removeprefix("aten::"))
        if found is not None and any(one.device.type == "cuda" for one in flat(args, self.torch.is_tensor)):
            return found
        has_kernel = self.torch._C._dispatch_has_kernel_for_dispatch_key  # noqa: SLF001  # as torch's modes ask
        composed = has_kernel(name, "CompositeImplicitAutograd") and name not in self._single
        return func.decompose if composed else None

    def _run(self, func: Any, args: Any, kwargs: Any, arguments: Arguments) -> Any:
        try:
            made = self._results.get(func, func)(*args, **kwargs)
        except self._depends:
            return self._by_values(func, args, kwargs, arguments)
        except self._unsupported as error:
            known = self._otherwise.get(func) or into_outputs(func)
            if known is None:
                raise self._untold(func) from error
            made = known(*args, **kwargs)
        except RuntimeError as error:
            if _NO_FAKE not in str(error):
                raise
            raise self._untold(func) from error
        self.known.follow(func, args, kwargs, arguments, made)
        self.chance.follow(func, args, made)
        return made

    def _untold(self, func: Any) -> BaseException:
        remedy = _WITHOUT if func.namespace == "aten" else _REGISTER
        return self.tape.stop(f"{func.name()} says nothing of its results without data", remedy)

    def _by_values(self, func: Any, args: Any, kwargs: Any, arguments: Arguments) -> Any:
        """Return what depends on values: tensors of sizes that only these tell, or a truth."""
        real = self.known.run(func, args, kwargs, arguments)
        if real is UNKNOWN and func is self._equal:
            real = passing()
            real = UNKNOWN if real is None else real
        if real is UNKNOWN:
            picked = self._by_lengths(func, args) if func is self._pack else self._by_masks(func, args)
            if picked is None:
                self.tape.note(func, arguments, None)
                name = func._schema.name.removeprefix("aten::")  # noqa: SLF001  # torch has no public schema
                raise self.tape.stop(f"what {name} returns depends on the values of its tensors", self.remedy)
            return picked
        if isinstance(real, (list, tuple)):
            return type(real)(self._like(one, arguments.tensors[0]) for one in real)
        return self._like(real, arguments.tensors[0])

    def _by_masks(self, func: Any, args: Any) -> Any | None:
        """Return what masks pick whose values are known, from a tensor whose values may be unknown."""
        aten = self.torch.ops.aten
        if func is aten.masked_select.default:
            func, args = aten.index.Tensor, (args[0], [args[1]])
        if func is not aten.index.Tensor:
            return None
        places: list[Any] = []
        for one in args[1]:
            if one is None or one.dtype not in (self.torch.bool, self.torch.uint8):
                places.append(one)
                continue
            real = self.known.of(one)
            if real is None:
                return None
            picked = self.known.aside(real.nonzero)
            places += [self._like(each, one) for each in picked.unbind(1)]
        return func(args[0], places)

    def _by_lengths(self, func: Any, args: Any) -> Any | None:
        """Return sequences packed by lengths that are known, as `pack_padded_sequence` does."""
        lengths = self.known.of(args[1])
        if lengths is None:
            return None
        zeros = partial(self.torch.zeros, tuple(args[0].shape), dtype=args[0].dtype, device="cpu")
        packed = self.known.aside(lambda: func(zeros(), lengths, *args[2:]))
        if packed is None:
            return None
        data = self.torch.empty(tuple(packed[0].shape), dtype=args[0].dtype, device=args[0].device)
        counts = self.torch.empty(tuple(packed[1].shape), dtype=packed[1].dtype, device="cpu")
        self.known.keep(counts, packed[1])
        return data, counts

    def _like(self, real: Any, other: Any) -> Any:
        """Return a tensor with values where another is."""
        if not self.torch.is_tensor(real):
            return real
        made = self.torch.empty_strided(real.shape, real.stride(), dtype=real.dtype, device=other.device)
        self.known.keep(made, real)
        return made

    def _scalar(self, tensor: Any) -> Any:
        real = self.known.of(tensor)
        self.unknown = real is None
        if real is not None:
            return self.known.aside(real.item)
        if not self.lenient:
            return self._passing(tensor)
        return 1.0 if tensor.dtype.is_floating_point else 1

    def _passing(self, tensor: Any) -> Any:
        """Return the truth with which a check raises nothing; anomaly mode's, of each gradient, is of NaN."""
        found = False if self.torch.is_anomaly_check_nan_enabled() and self.accumulation.step else passing()
        if found is None:
            raise self.tape.stop("the program decides by a tensor's value", self.remedy)
        return found if tensor.dtype == self.torch.bool else int(found)

    def _annotation(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = func._schema.name  # noqa: SLF001  # torch has no public schema
        if "enter" in name:
            self.tape.enter(str(args[0]))
        elif "exit" in name:
            self.tape.leave()
        return func(*args, **kwargs)
