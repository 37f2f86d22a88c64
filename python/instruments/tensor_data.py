"""Tells whether a tensor has data to read: torch itself crashes on some that have none."""

from typing import Any


def why_no_data(torch: Any, tensor: Any) -> str | None:
    """The reason why the values of a tensor can't be read; None where they can, or where torch says so itself.

    Asks torch's own methods only; call it with `__torch_function__` disabled.
    """
    base = torch._C.TensorBase
    if base.is_meta.__get__(tensor):
        return "a meta tensor has no data"
    if base.is_nested.__get__(tensor) or base.layout.__get__(tensor) is not torch.strided:
        return None
    sizes = base.size(tensor)
    if 0 in sizes:
        return None
    try:
        held = base.untyped_storage(tensor).nbytes()
    except NotImplementedError:
        # Wrappers of function transforms, which have none of their own.
        return None
    last = sum((size - 1) * stride for size, stride in zip(sizes, base.stride(tensor), strict=True))
    needed = (base.storage_offset(tensor) + last + 1) * base.element_size(tensor)
    # As where `untyped_storage().resize_(0)` gave the memory back.
    return None if held >= needed else f"its storage has {held} bytes of {needed}"
