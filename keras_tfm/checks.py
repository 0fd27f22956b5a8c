"""Argument checks whose messages say what came and what was expected."""

import difflib
import numbers


def check_positive_int(name, value):
    """Return `value` as an `int` if it is a whole number of at least 1.

    Args:
        name: String. The argument's name, for the message.
        value: The argument's value.

    Returns:
        `value` as a Python integer.

    Raises:
        ValueError: If `value` is not a whole number of at least 1.

    Example:
        >>> check_positive_int("num_heads", 8)
        8
    """
    if not _is_whole(value) or value < 1:
        raise ValueError(
            f"`{name}` must be a whole number of at least 1. "
            f"Received: {name}={value!r}."
        )
    return int(value)


def check_whole_number(name, value):
    """Return `value` as an `int` if it is a whole number of at least 0."""
    if not _is_whole(value) or value < 0:
        raise ValueError(
            f"`{name}` must be a whole number of at least 0. "
            f"Received: {name}={value!r}."
        )
    return int(value)


def check_positive(name, value):
    """Return `value` as a `float` if it is a finite number above 0."""
    if not _is_real(value) or not 0 < value < float("inf"):
        raise ValueError(
            f"`{name}` must be a number above 0. Received: {name}={value!r}."
        )
    return float(value)


def check_share(name, value):
    """Return `value` as a `float` if it lies in [0, 1).

    Raises:
        ValueError: If `value` is not a number in [0, 1).

    Example:
        >>> check_share("dropout", 0)
        0.0
    """
    if not _is_real(value) or not 0 <= value < 1:
        raise ValueError(
            f"`{name}` must be a number in [0, 1). Received: {name}={value!r}."
        )
    return float(value)


def check_divisible(name, value, by_name, by_value):
    """Raise `ValueError` unless `value` splits evenly into `by_value` parts."""
    if value % by_value:
        nearest = max(value // by_value, 1) * by_value
        raise ValueError(
            f"`{name}` must be divisible by `{by_name}`. "
            f"Received: {name}={value}, {by_name}={by_value}. "
            f"Try {name}={nearest}."
        )


def check_choice(name, value, choices):
    """Return `value` if it is one of `choices`; suggest the nearest if not.

    Raises:
        ValueError: If `value` is not one of `choices`.

    Example:
        >>> check_choice("layout", "concat", ("concat", "interleaved"))
        'concat'
    """
    choices = tuple(choices)
    if not any(value is choice or value == choice for choice in choices):
        known = ", ".join(repr(choice) for choice in choices)
        near = difflib.get_close_matches(
            str(value), [str(choice) for choice in choices], n=1
        )
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(
            f"`{name}` must be one of {known}. "
            f"Received: {name}={value!r}.{hint}"
        )
    return value


def _is_whole(value):
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _is_real(value):
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
