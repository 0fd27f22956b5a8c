"""The lines that are drawn have the numbers of the log."""

import itertools
import sys

import matplotlib
import pytest
from matplotlib import pyplot

from keras_tfm.training.training_log_file import append_row
from keras_tfm.visualization.learning_curves import plot_learning_curves

SIGNATURE = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def log():
    return {
        "step": [2.0, 3.0, 3.0, 5.0, 5.0],
        "minutes": [0.2, 0.3, 0.35, 0.5, 0.55],
        "tokens_per_second": [70.0, 71.0, None, 72.0, None],
        "learning_rate": [1e-5, 2e-5, None, 3e-5, None],
        "loss": [7.0, 6.0, None, 5.0, None],
        "validation_bleu": [None, None, 11.0, None, 13.0],
        "validation_chrf": [None, None, 17.0, None, None],
    }


def panels(figure):
    return {axes.get_title(): axes for axes in figure.axes}


def lines(axes):
    return [
        ([*map(float, line.get_xdata())], [*map(float, line.get_ydata())])
        for line in axes.get_lines()
    ]


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_the_lines_are_those_of_the_log(log):
    drawn = panels(plot_learning_curves(log))
    assert list(drawn) == [
        *("Loss", "Learning rate"),
        *("Validation BLEU", "Validation chrF"),
    ]
    steps = [2.0, 3.0, 5.0]
    assert lines(drawn["Loss"]) == [(steps, [7.0, 6.0, 5.0])]
    assert lines(drawn["Learning rate"]) == [(steps, [1e-5, 2e-5, 3e-5])]
    assert lines(drawn["Validation BLEU"]) == [([0.35, 0.55], [11.0, 13.0])]
    assert lines(drawn["Validation chrF"]) == [([0.35], [17.0])]
    across = [axes.get_xlabel() for axes in drawn.values()]
    assert across == ["step", "step", "minutes", "minutes"]
    assert not any(texts(axes) for axes in drawn.values())


def test_a_path_is_read_and_a_picture_is_written(tmp_path, log):
    path = tmp_path / "log.csv"
    for index, step in enumerate(log["step"]):
        row = {name: values[index] for name, values in log.items()}
        append_row(path, {**row, "step": int(step)})
    picture = tmp_path / "new" / "curves.png"
    figure = plot_learning_curves(path, picture)
    expected = panels(plot_learning_curves(log))
    for title, axes in panels(figure).items():
        assert lines(axes) == lines(expected[title])
    assert picture.read_bytes().startswith(SIGNATURE)
    assert picture.stat().st_size > 10_000


def test_several_logs_share_a_figure_with_a_legend(tmp_path, log):
    slow = {**log, "minutes": [2 * m for m in log["minutes"]]}
    without = {name: log[name] for name in ("step", "loss")}
    logs = {"fast": log, "_slow": slow, "plain": without}
    figure = plot_learning_curves(logs, tmp_path / "curves.png")
    drawn = panels(figure)
    assert lines(drawn["Validation BLEU"]) == [
        ([0.35, 0.55], [11.0, 13.0]),
        ([0.7, 1.1], [11.0, 13.0]),
        ([], []),
    ]
    colours = [
        [line.get_color() for line in axes.get_lines()] for axes in figure.axes
    ]
    assert colours == [["C0", "C1", "C2"]] * 4
    (legend,) = figure.legends
    names = [text.get_text().strip() for text in legend.get_texts()]
    assert names == ["fast", "_slow", "plain"]


def test_one_log_needs_no_legend(log):
    assert not plot_learning_curves(log).legends


def test_the_parts_of_the_picture_do_not_overlap(log):
    names = ("one", "a second name that is rather long", *"abcdefg")
    # Long steps and small rates are what labels get wide from.
    wide = {**log, "step": [2e5, 3e5, 3e5, 5e5, 5e5]}
    figure = plot_learning_curves(dict.fromkeys(names, wide))
    figure.draw_without_rendering()
    boxes = [axes.get_tightbbox() for axes in figure.axes]
    boxes += [legend.get_window_extent() for legend in figure.legends]
    for index, box in enumerate(boxes):
        assert figure.bbox.padded(1).containsx(box.x0)
        assert figure.bbox.padded(1).containsx(box.x1)
        assert not any(box.overlaps(other) for other in boxes[:index])
    labels = figure.axes[0].get_xticklabels()
    extents = [label.get_window_extent() for label in labels]
    for one, other in itertools.pairwise(extents):
        assert one.x1 < other.x0


@pytest.mark.parametrize("empty", [{}, {"step": [], "minutes": []}])
def test_a_log_without_rows_gives_empty_panels(tmp_path, empty):
    picture = tmp_path / "curves.png"
    drawn = panels(plot_learning_curves(empty, picture))
    assert list(drawn) == ["Loss", "Learning rate"]
    for axes in drawn.values():
        assert lines(axes) == [([], [])]
        assert texts(axes) == ["no values yet"]
    assert picture.read_bytes().startswith(SIGNATURE)


def test_a_single_row_can_be_seen():
    figure = plot_learning_curves({"step": [7.0], "loss": [5.0]})
    (line,) = figure.axes[0].get_lines()
    assert line.get_marker() == "o"
    many = {"step": [*range(99)], "loss": [5.0] * 99}
    (line,) = plot_learning_curves(many).axes[0].get_lines()
    assert line.get_marker() == ""


def test_pyplot_is_left_alone(tmp_path, log):
    figures = pyplot.get_fignums()
    settings = dict(matplotlib.rcParams)
    plot_learning_curves(log, tmp_path / "curves.png")
    assert pyplot.get_fignums() == figures
    assert dict(matplotlib.rcParams) == settings


def test_what_is_no_log_is_named():
    with pytest.raises(TypeError, match=r"several by name.*\['a', 'b'\]"):
        plot_learning_curves(["a", "b"])


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install 'keras_tfm\[viz\]'"):
        plot_learning_curves({})
