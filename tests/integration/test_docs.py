"""The documentation keeps its word: code, commands and links."""

import contextlib
import io
import os
import pathlib
import re
import shlex
import textwrap

import pytest
import typer

from keras_tfm.cli.main import app

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [
    path
    for path in [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
    if path.is_file()
]
# These train, export and load again: too long for the quick part.
SLOW = ["docs/how_to/serve.md", "docs/tutorials/first_translator.md"]
BLOCK = re.compile(
    r"^( *)```(\w*)[^\n]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL
)
# `print(…)  # -> this` promises to print this.
PROMISE = re.compile(r"  # -> (.+)$", re.MULTILINE)
LINK = re.compile(r"\]\(([^()\s]+)\)")


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def blocks(page, *languages):
    """Yield the line and the text of each code block in these languages."""
    text = page.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        if match[2] in languages:
            line = text.count("\n", 0, match.start(3))
            yield line, textwrap.dedent(match[3])


def prose(page):
    """Return a page without its code."""
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(page):
    """Return the anchors that a forge makes of a page's headings."""
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ +(.+?)\s*$", text, re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in headings
    }


def broken_links(page):
    """Yield the links of a page that lead to no file or no heading."""
    for link in LINK.findall(prose(page)):
        if "://" in link or link.startswith("mailto:"):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield link


def keras_tfm_commands(page):
    """Yield the arguments of each call of `keras-tfm` in the shell blocks."""
    for _, block in blocks(page, "sh", "bash"):
        for line in block.replace("\\\n", " ").splitlines():
            for command in re.split(r" \| | && ", line):
                words = shlex.split(command, comments=True)
                while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
                    words = words[1:]
                if words[:3] == ["python", "-m", "keras_tfm"]:
                    yield words[3:]
                elif words[:1] == ["keras-tfm"]:
                    yield words[1:]


def run_page(page):
    """Run the Python blocks of a page in order, in one namespace."""
    namespace = {"__name__": "docs_page"}
    for line, block in blocks(page, "python"):
        # As many empty lines as come before: a traceback shows the page.
        code = compile("\n" * line + block, str(page), "exec")
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(code, namespace)
        printed = output.getvalue().splitlines()
        for promise in PROMISE.findall(block):
            assert promise in printed, f"{page.name}, line {line}"


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.slow)
        if name_of(page) in SLOW
        else page
        for page in PAGES
    ],
    ids=name_of,
)
def test_every_python_block_runs_and_prints_what_it_says(
    page, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    run_page(page)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_to_a_file_and_a_heading(page):
    assert not list(broken_links(page))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_is_one_that_the_command_line_takes(
    page, monkeypatch, tmp_path
):
    # Wide, so that a message is not broken.
    monkeypatch.setitem(os.environ, "COLUMNS", "200")
    # The recipes that a page shows, and those of the repository.
    monkeypatch.chdir(tmp_path)
    for _, recipe in blocks(page, "yaml"):
        pathlib.Path("mine.yaml").write_text(recipe, encoding="utf-8")
    pathlib.Path("examples").symlink_to(ROOT / "examples")
    group = typer.main.get_command(app)
    for arguments in keras_tfm_commands(page):
        command = next((a for a in arguments if not a.startswith("-")), None)
        if command is None:
            continue  # `keras-tfm --help`
        rest = arguments[arguments.index(command) + 1 :]
        assert command in group.commands, arguments
        if "--help" not in rest:
            # Raises the error that the user would see.
            group.commands[command].make_context(command, list(rest))


def test_every_code_block_says_its_language():
    silent = [
        (name_of(page), line) for page in PAGES for line, _ in blocks(page, "")
    ]
    assert not silent


def test_the_map_leads_to_every_page():
    linked = {
        (ROOT / "docs" / link.partition("#")[0]).resolve()
        for link in LINK.findall(prose(ROOT / "docs" / "index.md"))
    }
    missing = [
        name_of(page)
        for page in ROOT.glob("docs/**/*.md")
        if page.name != "index.md" and page not in linked
    ]
    assert not missing


def write_page(folder, text):
    page = folder / "page.md"
    page.write_text(textwrap.dedent(text), encoding="utf-8")
    return page


def test_a_broken_link_would_be_found(tmp_path):
    page = write_page(
        tmp_path,
        """
        # A page
        [good](#a-page) [bad](#b-page) [worse](other.md) `[code](x.md)`
        """,
    )
    assert list(broken_links(page)) == ["#b-page", "other.md"]


def test_an_unkept_promise_would_be_found(tmp_path):
    page = write_page(
        tmp_path,
        """
        ```python
        print(1 + 1)  # -> 3
        ```
        """,
    )
    with pytest.raises(AssertionError):
        run_page(page)


def test_an_unknown_flag_would_be_found(tmp_path):
    page = write_page(
        tmp_path,
        """
        ```sh
        KERAS_BACKEND=jax keras-tfm train --tsv pairs.tsv \\
            --folder runs/mine --bogus 3
        ```
        """,
    )
    (arguments,) = keras_tfm_commands(page)
    command = typer.main.get_command(app).commands[arguments[0]]
    with pytest.raises(Exception, match="bogus"):
        command.make_context(arguments[0], arguments[1:])
