"""Results go to the standard output, notes to the standard error."""

from keras_tfm.cli.console import make_console
from keras_tfm.cli.console import note
from keras_tfm.cli.console import print_facts
from keras_tfm.cli.console import print_table
from keras_tfm.cli.console import say


def test_notes_do_not_disturb_the_results(capsys):
    note("careful")
    say("result")
    assert tuple(capsys.readouterr()) == ("result\n", "keras-tfm: careful\n")


def test_text_in_brackets_is_text(capsys):
    print_table("[bold]", ("[red]",), [("[/x] :smile:",)])
    output = capsys.readouterr().out
    assert all(text in output for text in ("[bold]", "[red]", "[/x] :smile:"))


def test_facts_and_rows_are_all_there(capsys):
    print_facts("Training", {"pairs": "3,000", "model": "x" * 150})
    output = capsys.readouterr().out
    assert "3,000" in output
    assert output.count("x") == 150


def test_a_log_has_no_colours_and_one_width(capsys):
    assert make_console().width == 100
    assert make_console(stderr=True).width == 100
    print_table("numbers", ("a", "b"), [("1", "2")], right=("b",))
    assert "\x1b" not in capsys.readouterr().out
