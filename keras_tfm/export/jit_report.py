"""What keeps XLA from compiling a model, as something to read and to ask."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

# What a finding means, and the word that begins its line.
BLOCKS = "blocked"
OFF = "switched off"
AGAIN = "compiled again"
ONCE = "runs once"
DYNAMIC = "dynamic shape"
_EFFECTS = (BLOCKS, OFF, AGAIN, ONCE, DYNAMIC)


@dataclasses.dataclass(frozen=True)
class JitFinding:
    """One thing that XLA stumbles over.

    Attributes:
        layer: String, the path of the layer, or what else it belongs to.
        operation: String, the operation, argument or input.
        reason: One sentence: why.
        remedy: One sentence: what to do.
        effect: String. `"blocked"`: XLA cannot compile the model.
            `"switched off"`: it could, and is not asked to. `"compiled again"`:
            more programs are compiled than one. `"runs once"`: Python code that
            the program will not repeat. `"dynamic shape"`: XLA on TensorFlow
            compiles it, with room for the worst case; JAX does not.
    """

    layer: str
    operation: str
    reason: str
    remedy: str
    effect: str = BLOCKS

    def __str__(self) -> str:
        place = (
            f"{self.operation} in {self.layer}"
            if self.layer
            else (self.operation)
        )
        return f"{self.effect}: {place}. {self.reason} {self.remedy}"


@dataclasses.dataclass(frozen=True)
class JitReport:
    """All findings about a model, the gravest first.

    It is a sequence of `JitFinding`s: it can be iterated, and has a length.

    Attributes:
        model: String, the model's name.
        findings: Tuple of `JitFinding`.
        traced: String, the inputs that the model was tried with.

    Example:
        >>> report = JitReport("mine", (), "inputs float32 (2, 3)")
        >>> report.blocked
        False
        >>> print(report)
        Nothing keeps XLA from compiling 'mine' (inputs float32 (2, 3)).
    """

    model: str
    findings: tuple[JitFinding, ...]
    traced: str = ""

    @property
    def blocked(self) -> bool:
        """Whether XLA refuses to compile the model."""
        return any(finding.effect == BLOCKS for finding in self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __iter__(self) -> Iterator[JitFinding]:
        return iter(self.findings)

    def __str__(self) -> str:
        traced = f" ({self.traced})" if self.traced else ""
        verdict = f"Nothing keeps XLA from compiling {self.model!r}{traced}."
        if self.blocked:
            verdict = f"XLA cannot compile {self.model!r}{traced}:"
        elif self.findings:
            verdict = f"{verdict[:-1]}, but:"
        return "\n".join([verdict, *(f"- {finding}" for finding in self)])


def make_report(
    model: str, findings: list[JitFinding], traced: str
) -> JitReport:
    """Put findings in order, each once."""
    order = {effect: place for place, effect in enumerate(_EFFECTS)}
    unique = dict.fromkeys(findings)
    ordered = sorted(unique, key=lambda finding: order[finding.effect])
    return JitReport(model, tuple(ordered), traced)
