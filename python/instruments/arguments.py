"""Reads what the service hands to an instrument."""

from typing import Any


def text_argument(arguments: dict[str, Any], name: str) -> str:
    """The text of this name.

    Raises:
        TypeError: It is missing or no text.
    """
    value = arguments.get(name)
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected text, got {type(value).__name__}")
    return value


def texts_argument(arguments: dict[str, Any], name: str) -> list[str]:
    """The list of texts of this name.

    Raises:
        TypeError: It is missing or no list of texts.
    """
    value = arguments.get(name)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise TypeError(f"{name}: expected a list of texts, got {type(value).__name__}")
    return value


def number_argument(arguments: dict[str, Any], name: str) -> float:
    """The positive number of this name.

    Raises:
        TypeError: It is missing or no number.
        ValueError: It is not above zero.
    """
    value = arguments.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name}: expected a number, got {type(value).__name__}")
    if not value > 0:
        raise ValueError(f"{name}: expected a number above 0, got {value}")
    return value


def object_argument(arguments: dict[str, Any], name: str) -> dict[str, Any]:
    """The object of this name.

    Raises:
        TypeError: It is missing or no object.
    """
    value = arguments.get(name)
    if not isinstance(value, dict):
        raise TypeError(f"{name}: expected an object, got {type(value).__name__}")
    return value
