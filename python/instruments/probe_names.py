"""What a person would call each parameter of a script, and each module that ran."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from instruments.probe_search import Search

MAX_PARAMETERS = 200
MAX_NAME_CHARS = 60

# torch.compile puts it before every name.
_WRAPPER_PREFIX = "_orig_mod."


@dataclass(slots=True)
class Names:
    """Names found at one moment.

    Attributes:
        parameters: Name and parameter, in the order of the models; holds on to the parameters, so that ids stay theirs.
        by_id: The same names by the parameter's id.
        optimizers: Labels of optimizers by id.
        left_out: Ids of parameters that are not listed since there are too many.
    """

    parameters: list[tuple[str, Any]] = field(default_factory=list)
    by_id: dict[int, str] = field(default_factory=dict)
    optimizers: dict[int, str] = field(default_factory=dict)
    left_out: set[int] = field(default_factory=set)
    _taken: set[str] = field(default_factory=set)

    def add(self, name: str, parameter: Any) -> None:
        """List a parameter, once; two of the same name are told apart."""
        if id(parameter) in self.by_id:
            return
        if len(self.parameters) == MAX_PARAMETERS:
            self.left_out.add(id(parameter))
            return
        short = shorten(name.replace(_WRAPPER_PREFIX, ""))
        unique, count = short, 2
        while unique in self._taken:
            unique, count = f"{short}#{count}", count + 1
        self._taken.add(unique)
        self.parameters.append((unique, parameter))
        self.by_id[id(parameter)] = unique


def find_names(frame: FrameType | None, optimizers: Iterable[Any], called: Iterable[Any]) -> Names:
    """Name the parameters of the optimizers and of the models that ran, frozen and forgotten ones included.

    As `named_parameters` does where one model has them all, with the variable's
    name before it where there are several; loose tensors by their variable; what
    has no other name by its place in the optimizer.

    Args:
        frame: Where the script stands.
        called: Modules that ran forward.
    """
    optimizers, called = list(optimizers), list(called)
    search, names = Search(frame), Names()
    held = {id(parameter) for optimizer in optimizers for parameter in parameters_of(optimizer)}
    models = _models(search, held, called)
    for label, model in models:
        for name, parameter in model.named_parameters():
            names.add(f"{label}.{name}" if len(models) > 1 else name, parameter)
    for label, tensor in search.tensors.values():
        if id(tensor) in held or (tensor.requires_grad and tensor.is_leaf and tensor.grad is not None):
            names.add(label, tensor)
    for optimizer in optimizers:
        label = search.optimizers.get(id(optimizer), ("", None))[0] or type(optimizer).__name__
        names.optimizers[id(optimizer)] = label
        for place, parameter in _places(optimizer):
            names.add(f"{label}.{place}", parameter)
    return names


def find_module_name(frame: FrameType | None, module: Any, called: Iterable[Any]) -> str:
    """What a person would call a module that is running."""
    models = sorted(Search(frame).modules.values(), key=lambda found: -sum(1 for _ in found[1].modules()))
    relevant = [(label, model) for label, model in models if any(part is module for part in model.modules())]
    if not relevant:
        return type(module).__name__
    label, model = relevant[0]
    name = next((name for name, part in model.named_modules() if part is module), "")
    parts = {id(part) for part in model.modules()}
    several = any(id(other) not in parts and any(True for _ in other.parameters()) for other in called)
    return shorten((f"{label}.{name}" if several else name) if name else label)


def parameters_of(optimizer: Any) -> list[Any]:
    """All that an optimizer holds, in its order."""
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def shorten(name: str) -> str:
    """A name that fits the report, its middle left out where it is long."""
    if len(name) <= MAX_NAME_CHARS:
        return name
    half = MAX_NAME_CHARS // 2 - 1
    return f"{name[:half]}..{name[-half:]}"


def _models(search: Search, held: set[int], called: list[Any]) -> list[tuple[str, Any]]:
    """Models whose parameters matter: an optimizer holds them, or they ran. A part of another one is none by itself."""
    ran = {id(module) for module in called}
    known = list(search.modules.values())
    known += [(type(module).__name__, module) for module in called if id(module) not in search.modules]
    sized = [(label, model, {id(parameter) for parameter in model.parameters()}) for label, model in known]
    chosen: list[tuple[str, Any]] = []
    taken: set[int] = set()
    for label, model, ids in sorted(sized, key=lambda found: -len(found[2])):
        if ids <= taken:
            continue
        if ids & held or any(id(part) in ran for part in model.modules()):
            chosen.append((label, model))
            taken |= ids
    order = {id(model): index for index, (_label, model) in enumerate(known)}
    return sorted(chosen, key=lambda found: order[id(found[1])])


def _places(optimizer: Any) -> Iterable[tuple[str, Any]]:
    for number, group in enumerate(optimizer.param_groups):
        given = group.get("param_names") or []
        for index, parameter in enumerate(group["params"]):
            yield (
                str(given[index]) if index < len(given) else f"param_groups[{number}]['params'][{index}]",
                parameter,
            )
