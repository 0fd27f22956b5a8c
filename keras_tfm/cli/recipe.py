"""Recipes: the options of `keras-tfm train` in a YAML file."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Annotated
from typing import Any

import typer

if TYPE_CHECKING:
    from yaml.error import Mark
    from yaml.nodes import Node

# What says nothing of a training.
_NOT_IN_A_RECIPE = ("help", "recipe")
_BOOLEANS = {
    **dict.fromkeys(("true", "yes", "on"), True),
    **dict.fromkeys(("false", "no", "off"), False),
}
_NULL = "tag:yaml.org,2002:null"


@dataclasses.dataclass(frozen=True)
class Entry:
    """What a recipe says of an option.

    Attributes:
        text: String, the value as it would stand on the command line; `None`
            for `null`, which is as if the option was not there.
        line: Positive integer, its line in the file.
    """

    text: str | None
    line: int


def take_recipe(context: typer.Context, value: Path | None) -> Path | None:
    """Let the options that are not on the command line be those of a file.

    A callback of an argument that comes before the options (`is_eager`).

    Args:
        context: The context of the command.
        value: Path of the recipe, or `None`.

    Returns:
        `value`.

    Raises:
        ValueError: If the file holds anything but options that are right; the
            message names the file and the line.
    """
    if value is None or context.resilient_parsing:
        return value
    parameters = {
        parameter.name: parameter
        for parameter in context.command.params
        if parameter.name not in _NOT_IN_A_RECIPE
    }
    defaults = dict(context.default_map or {})
    for name, entry in read_recipe(value).items():
        place = f"{value}, line {entry.line}"
        if name not in parameters:
            raise ValueError(f"{place}: {_unknown(name, parameters)}")
        if entry.text is not None:
            try:
                defaults[name] = _checked(parameters[name], entry.text, context)
            except typer.BadParameter as error:
                raise ValueError(
                    f"{place}: `{name}: {entry.text}` is not right: "
                    f"{error.message}"
                ) from error
    # Options of the command line win over these, and required ones count.
    context.default_map = defaults
    return value


RecipeArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="RECIPE",
        help="YAML file of options, such as tokens_per_batch: 4096, with paths "
        "relative to the current folder. What is on the command line wins.",
        show_default=False,
        callback=take_recipe,
        is_eager=True,
    ),
]


def read_recipe(path: Path) -> dict[str, Entry]:
    """Read the options of a recipe, whatever they are.

    Values are not interpreted: `no` is a language, and 5e-3 is a number.

    Args:
        path: Path of a YAML file.

    Returns:
        A dictionary from the names of the options to what it says of them.

    Raises:
        ValueError: If the file is missing or holds anything but options.
    """
    import yaml

    root = _compose(path)
    if not isinstance(root, yaml.MappingNode):
        raise ValueError(
            f"{path}: a recipe holds options such as `steps: 1000`, one on "
            f"each line. Received: {_kind(root)}."
        )
    entries: dict[str, Entry] = {}
    for key, value in root.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise ValueError(
                f"{path}, line {line}: an option was expected. Received: "
                f"{_kind(key)}."
            )
        if key.value in entries:
            raise ValueError(
                f"{path}, line {line}: `{key.value}` is given twice, also in "
                f"line {entries[key.value].line}; leave one out."
            )
        if not isinstance(value, yaml.ScalarNode):
            raise ValueError(
                f"{path}, line {line}: `{key.value}` must be one value. "
                f"Received: {_kind(value)}."
            )
        text = None if value.tag == _NULL else value.value
        entries[key.value] = Entry(text, line)
    return entries


def write_recipe(
    path: Path, groups: Mapping[str, Mapping[str, Any]], heading: str = ""
) -> None:
    """Write options into a file that `read_recipe` reads.

    Args:
        path: Path. What is there is replaced at once.
        groups: Dictionary from titles to options: dictionaries of strings,
            numbers, booleans and `None`.
        heading: String, a comment above. Defaults to none.
    """
    import yaml

    lines = [f"# {line}" for line in heading.splitlines()]
    for title, options in groups.items():
        if options:
            content = yaml.safe_dump(
                {name: _plain(value) for name, value in options.items()},
                sort_keys=False,
                allow_unicode=True,
                width=float("inf"),
            )
            lines += ["", f"# {title}", content.rstrip("\n")]
    temporary = path.with_name(f".new.{path.name}")
    temporary.write_text("\n".join(lines).strip() + "\n", encoding="utf-8")
    temporary.replace(path)


def _compose(path: Path) -> Node | None:
    import yaml

    if path.is_dir():
        raise ValueError(f"{path} is a folder; give the recipe in it.")
    if not path.is_file():
        raise ValueError(f"{path}: there is no such recipe; check the path.")
    try:
        content = path.read_bytes().decode("utf-8-sig")
        # Nodes, and no objects: they know their lines.
        return yaml.compose(content, Loader=yaml.SafeLoader)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path}, byte {error.start + 1}: this is not valid UTF-8; give "
            "text in UTF-8."
        ) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise ValueError(
            f"{path}{_line(mark)}: this is not YAML: {error.problem}. Write "
            "`option: value` on each line."
        ) from error
    except yaml.YAMLError as error:
        raise ValueError(f"{path}: this is not YAML: {error}") from error


def _checked(parameter: Any, text: str, context: typer.Context) -> Any:
    if not getattr(parameter, "is_flag", False):
        parameter.process_value(context, text)
        return text
    if text.lower() not in _BOOLEANS:
        raise typer.BadParameter("it is true or false.")
    return _BOOLEANS[text.lower()]


def _unknown(name: str, parameters: Mapping[str, Any]) -> str:
    for known, parameter in parameters.items():
        # The other side of a pair such as --joint/--separate.
        if "--" + name.replace("_", "-") in parameter.secondary_opts:
            return f"write `{known}: false` for `{name}`."
    near = difflib.get_close_matches(
        name.replace("-", "_").strip("_"), parameters, n=1
    )
    hint = f"Did you mean `{near[0]}`?" if near else ""
    return (
        f"there is no option `{name}`. {hint or 'See keras-tfm train --help.'}"
    )


def _plain(value: Any) -> Any:
    # Of an enumeration, the string.
    return str(value) if isinstance(value, str) else value


def _line(mark: Mark | None) -> str:
    return "" if mark is None else f", line {mark.line + 1}"


def _kind(node: Node | None) -> str:
    import yaml

    if node is None:
        return "nothing"
    if isinstance(node, yaml.ScalarNode):
        return f"the text {node.value!r}"
    is_list = isinstance(node, yaml.SequenceNode)
    return "a list" if is_list else "options of its own"
