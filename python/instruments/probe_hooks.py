"""Puts a probe where torch passes, and takes it away again."""

import functools
import os
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from types import FrameType
from typing import Any

from instruments.probe import Probe
from instruments.probe_search import folder_of
from instruments.probe_stop import ProbeStop


def watch(probe: Probe) -> ExitStack:
    """Let the probe see what happens in torch, which must be imported, in every thread of this process.

    Returns:
        What removes the hooks when it is closed.
    """
    hooks = ExitStack()
    _watch_steps(probe, hooks)
    _watch_losses(probe, hooks)
    _watch_scalers(probe, hooks)
    _watch_outputs(probe, hooks)
    _quiet_threads(hooks)
    return hooks


def _watch_steps(probe: Probe, hooks: ExitStack) -> None:
    optimizer_module = sys.modules["torch.optim.optimizer"]

    def before(optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return probe.before_step(optimizer, args, kwargs) if probe.watches() else None

    def after(optimizer: Any, _args: object, _kwargs: object) -> None:
        if probe.watches():
            probe.after_step(optimizer)

    def wrap(make: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(make)
        def made(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            make(optimizer, *args, **kwargs)
            if probe.watches():
                probe.on_built(optimizer)

        return made

    hooks.callback(optimizer_module.register_optimizer_step_pre_hook(before).remove)
    hooks.callback(optimizer_module.register_optimizer_step_post_hook(after).remove)
    _replace(optimizer_module.Optimizer, "__init__", wrap, hooks)


def _watch_losses(probe: Probe, hooks: ExitStack) -> None:
    autograd = sys.modules["torch.autograd"]

    def wrap_backward(backward: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(backward)
        def watched(tensors: Any, grad_tensors: Any = None, *args: Any, **kwargs: Any) -> Any:
            if not _is_of_torch(sys._getframe(1)) and probe.watches():
                probe.on_backward(tensors, grad_tensors, sys._getframe(1))
            return backward(tensors, grad_tensors, *args, **kwargs)

        return watched

    def wrap_grad(grad: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(grad)
        def watched(outputs: Any, inputs: Any, grad_outputs: Any = None, *args: Any, **kwargs: Any) -> Any:
            # With a graph of its own it is part of a loss, not the end of one.
            ends = not kwargs.get("create_graph") and not any(args[1:2]) and _are_leaves(inputs)
            if ends and not _is_of_torch(sys._getframe(1)) and probe.watches():
                probe.on_grad(outputs, grad_outputs, sys._getframe(1))
            return grad(outputs, inputs, grad_outputs, *args, **kwargs)

        return watched

    _replace(autograd, "backward", wrap_backward, hooks)
    _replace(autograd, "grad", wrap_grad, hooks)


def _watch_scalers(probe: Probe, hooks: ExitStack) -> None:
    scaler_class = sys.modules["torch.amp.grad_scaler"].GradScaler

    def wrap_scale(scale: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(scale)
        def watched(scaler: Any, outputs: Any) -> Any:
            scaled = scale(scaler, outputs)
            if scaler.is_enabled() and probe.watches():
                probe.on_scaled(scaler.get_scale(), scaled)
            return scaled

        return watched

    def wrap_step(step: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(step)
        def watched(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            before = len(probe.record.steps)
            result = step(scaler, optimizer, *args, **kwargs)
            if scaler.is_enabled() and len(probe.record.steps) == before and probe.watches():
                probe.on_skipped(optimizer)
            return result

        return watched

    _replace(scaler_class, "scale", wrap_scale, hooks)
    _replace(scaler_class, "step", wrap_step, hooks)


def _watch_outputs(probe: Probe, hooks: ExitStack) -> None:
    torch = sys.modules["torch"]

    def after(module: Any, inputs: Any, output: Any) -> None:
        # A graph that is being recorded must not hold what the probe does.
        if not torch.compiler.is_compiling() and not torch.jit.is_tracing() and probe.watches():
            probe.on_output(module, inputs, output)

    # torch says that it sees the hook, which is no matter of the script's.
    hooks.enter_context(warnings.catch_warnings())
    warnings.filterwarnings("ignore", message="Using `torch.compile")
    hooks.callback(sys.modules["torch.nn.modules.module"].register_module_forward_hook(after).remove)


def _quiet_threads(hooks: ExitStack) -> None:
    def wrap(report: Callable[[Any], object]) -> Callable[[Any], object]:
        def told(raised: Any) -> object:
            return None if issubclass(raised.exc_type, ProbeStop) else report(raised)

        return told

    _replace(threading, "excepthook", wrap, hooks)


def _replace(owner: Any, name: str, wrap: Callable[[Any], Any], hooks: ExitStack) -> None:
    original = getattr(owner, name)
    setattr(owner, name, wrap(original))
    hooks.callback(setattr, owner, name, original)


def _is_of_torch(caller: FrameType) -> bool:
    """Whether torch itself goes backward, as a checkpoint does inside of another backward call."""
    file = caller.f_code.co_filename
    return file.startswith(folder_of(sys.modules["torch"])) and os.path.basename(file) != "_tensor.py"


def _are_leaves(inputs: Any) -> bool:
    found = [inputs] if not isinstance(inputs, list | tuple) else inputs
    return len(found) > 0 and all(getattr(tensor, "is_leaf", False) and tensor.requires_grad for tensor in found)
