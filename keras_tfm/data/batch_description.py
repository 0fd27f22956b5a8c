"""One line for people about the batches of a training."""

from __future__ import annotations


def describe_batches(
    num_pairs: int,
    num_dropped: int,
    limit: str,
    shapes: str,
    steps_per_epoch: int,
    padding_share: float,
) -> str:
    """Say how many pairs and steps there are, and how much is padding.

    Args:
        num_pairs: Non-negative integer, the pairs in the batches.
        num_dropped: Non-negative integer, the pairs that are too long.
        limit: String, the most tokens that a pair may have.
        shapes: String, what the batches look like.
        steps_per_epoch: Non-negative integer, the batches of an epoch.
        padding_share: Float between 0 and 1.

    Example:
        >>> describe_batches(1, 2, "9", "1 row of 4+4", 1, 0.25)
        '1 pair (2 dropped: longer than 9 tokens), 1 row of 4+4, 1 step an \
epoch, 25.0% padding'
    """
    dropped = ""
    if num_dropped:
        dropped = f" ({num_dropped:,} dropped: longer than {limit} tokens)"
    return (
        f"{counted(num_pairs, 'pair')}{dropped}, {shapes}, "
        f"{counted(steps_per_epoch, 'step')} an epoch, "
        f"{padding_share:.1%} padding"
    )


def counted(number: int, what: str) -> str:
    """Write a number with its noun.

    Example:
        >>> counted(1, "row"), counted(2000, "row")
        ('1 row', '2,000 rows')
    """
    return f"{number:,} {what}" + ("" if number == 1 else "s")
