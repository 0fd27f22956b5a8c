"""The learning curves of one training, or of several to compare."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from typing import TypeAlias

from keras_tfm.training.training_log_file import read_training_log

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The columns of a log by name; `None` where a row has no value.
Columns: TypeAlias = Mapping[str, list[float | None]]
Log: TypeAlias = str | Path | Columns

_SCORES = "validation_"
# Names that are no words.
_WRITTEN = {"bleu": "BLEU", "chrf": "chrF"}
# Lines of so few points get marks: one point alone would not be seen.
_FEW_POINTS = 40
_PANELS_A_ROW = 2
_PANEL_SIZE = (5.0, 3.4)  # in inches


def plot_learning_curves(
    log: Log | Mapping[str, Log], path: str | Path | None = None
) -> Figure:
    """Draw loss and learning rate by step, and each score by the minutes.

    A score is a column whose name begins with `validation_`. The figure belongs
    to nobody else: the state of `matplotlib.pyplot` is left alone, and no
    screen is needed.

    Args:
        log: Path of a log that `TrainingLog` wrote, or its columns as
            `read_training_log` returns them; or a dictionary of several by
            name, to compare.
        path: Path of the picture; its ending decides the format, such as
            `.png` or `.svg`. Defaults to none.

    Returns:
        A `matplotlib.figure.Figure`, which a notebook shows.

    Raises:
        ImportError: If `matplotlib` is missing.
        TypeError: If `log` is something else.

    Example:
        >>> log = {"step": [100.0, 200.0], "minutes": [1.0, 2.0]}
        >>> figure = plot_learning_curves({**log, "loss": [5.1, 4.2]})
        >>> [axes.get_title() for axes in figure.axes]
        ['Loss', 'Learning rate']
    """
    figure_class = _figure_class()
    logs = _columns_by_name(log)
    panels = [
        ("loss", "step", "Loss"),
        ("learning_rate", "step", "Learning rate"),
        *((name, "minutes", _title(name)) for name in _scores(logs.values())),
    ]
    rows = -(-len(panels) // _PANELS_A_ROW)
    width, height = _PANEL_SIZE
    legend = 0.3 * -(-len(logs) // 4) if len(logs) > 1 else 0.0
    figure = figure_class(
        (_PANELS_A_ROW * width, rows * height + legend), layout="constrained"
    )
    for position, (name, across, title) in enumerate(panels, start=1):
        axes = figure.add_subplot(rows, _PANELS_A_ROW, position)
        _draw_panel(axes, logs, name, across)
        axes.set_title(title)
    if len(logs) > 1:
        # Every panel has a line for each log, if only an empty one.
        figure.legend(
            handles=figure.axes[0].get_lines(),
            loc="outside upper center",
            ncols=min(len(logs), 4),
            frameon=False,
        )
    if path is not None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120, facecolor="white")
    return figure


def _draw_panel(
    axes: Axes, logs: Mapping[str, Columns], name: str, across: str
) -> None:
    for number, (label, columns) in enumerate(logs.items()):
        points = _points(columns, across, name)
        axes.plot(
            [x for x, _ in points],
            [y for _, y in points],
            # A legend leaves out what begins with "_".
            label=f" {label}" if label.startswith("_") else label,
            color=f"C{number}",
            linewidth=1.4,
            marker="o" if len(points) <= _FEW_POINTS else "",
            markersize=3.5,
        )
    axes.set_xlabel(across)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    # Neighbours must not touch: few steps, and rates of a millionth in short.
    axes.locator_params(axis="x", nbins=6)
    axes.ticklabel_format(
        axis="y", style="sci", scilimits=(-3, 5), useMathText=True
    )
    if not any(len(line.get_xdata()) for line in axes.get_lines()):
        axes.text(
            *(0.5, 0.5, "no values yet"),
            transform=axes.transAxes,
            horizontalalignment="center",
            color="grey",
        )


def _points(
    columns: Columns, across: str, name: str
) -> list[tuple[float, float]]:
    if across not in columns or name not in columns:
        return []
    pairs = zip(columns[across], columns[name], strict=True)
    return [(x, y) for x, y in pairs if x is not None and y is not None]


def _scores(logs: Iterable[Columns]) -> list[str]:
    # Each once, in the order in which they come.
    names = (name for columns in logs for name in columns)
    return [n for n in dict.fromkeys(names) if n.startswith(_SCORES)]


def _title(name: str) -> str:
    words = name.split("_")
    title = " ".join(_WRITTEN.get(word, word) for word in words)
    return title[:1].upper() + title[1:]


def _columns_by_name(log: Log | Mapping[str, Log]) -> dict[str, Columns]:
    if isinstance(log, str | Path) or _is_columns(log):
        log = {"": log}
    if not isinstance(log, Mapping):
        raise TypeError(
            "`log` must be a path, the columns of a log, or a dictionary of "
            f"several by name. Received: log={log!r}."
        )
    return {
        name: value if _is_columns(value) else read_training_log(value)
        for name, value in log.items()
    }


def _is_columns(log: Log | Mapping[str, Log]) -> bool:
    return isinstance(log, Mapping) and all(
        not isinstance(value, str | Path | Mapping) for value in log.values()
    )


def _figure_class() -> type[Figure]:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "plot_learning_curves needs the package `matplotlib`. "
            "Run: pip install 'keras_tfm[viz]'"
        ) from error
    return Figure
