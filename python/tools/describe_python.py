"""Describe the interpreter that runs this, as one JSON line on stdout.

Any Python 3 can read this file, so that one that is too old can say so.
With `--packages` torch and numpy are imported as well, which takes seconds.
"""

import importlib
import importlib.util
import json
import platform
import sys


def describe_interpreter() -> "dict[str, object]":
    """Facts that cost nothing to know."""
    has_ensurepip = importlib.util.find_spec("ensurepip") is not None
    return {
        "executable": sys.executable,
        "version": platform.python_version(),
        "release": list(sys.version_info[:2]),
        "can_make_venv": importlib.util.find_spec("venv") is not None and has_ensurepip,
        "bundled_pip": importlib.import_module("ensurepip").version() if has_ensurepip else None,
    }


def describe_packages() -> "dict[str, object]":
    """Which torch and numpy import, and what torch can compute on."""
    return {"torch": _version_of("torch"), "numpy": _version_of("numpy"), "cuda_devices": _cuda_devices()}


def _version_of(name: str) -> "str | None":
    try:
        return str(importlib.import_module(name).__version__)
    except ImportError:
        return None


def _cuda_devices() -> "list[str]":
    try:
        cuda = importlib.import_module("torch").cuda
    except ImportError:
        return []
    if not cuda.is_available():
        return []
    return [str(cuda.get_device_name(index)) for index in range(cuda.device_count())]


def main() -> None:
    """Print the description."""
    facts = describe_interpreter()
    if "--packages" in sys.argv[1:]:
        facts.update(describe_packages())
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
