"""The rules of the house that no linter knows: one test a rule."""

import ast
import importlib
import inspect
import pathlib
import re
import subprocess

import keras
import pytest

import keras_tfm

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "keras_tfm"
TESTS = ROOT / "tests"
MODULES = sorted(PACKAGE.rglob("*.py"))
LEAVES = [path for path in MODULES if path.stem != "__init__"]
PACKAGES = [path for path in MODULES if path.stem == "__init__"]

MAX_LINES = 350
VAGUE_NAMES = {"utils", "common", "helpers", "misc", "core"}
TENSOR_WING = ("ops", "layers", "models", "training", "generation")

# Modules that are tested where everything comes together: the path inside the
# package, and the test file that does it, from the root.
TESTED_ELSEWHERE = {}

SERIALISABLE = (
    keras.Layer,
    keras.Loss,
    keras.Metric,
    keras.optimizers.schedules.LearningRateSchedule,
)


def relative(path):
    return path.relative_to(ROOT).as_posix()


def dotted(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def imported_modules(syntax):
    """Yield the modules of keras_tfm that a syntax tree imports from."""
    for node in ast.walk(syntax):
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            if name.partition(".")[0] == "keras_tfm":
                yield name


def is_leaf(name):
    return (ROOT / (name.replace(".", "/") + ".py")).is_file()


def harmful_constants(syntax):
    """Yield numbers that a 16-bit mask or score could not hold."""
    for node in ast.walk(syntax):
        negative = isinstance(node, ast.UnaryOp) and isinstance(
            node.op, ast.USub
        )
        value = getattr(node.operand if negative else node, "value", None)
        if negative and isinstance(value, int | float) and value >= 1e4:
            yield -value
        elif isinstance(value, float) and value >= 6.6e4:
            yield value


def exported(syntax):
    """Return the names that an `__init__` imports, and its `__all__`."""
    imports, names = [], None
    for node in syntax.body:
        if isinstance(node, ast.ImportFrom):
            imports += [alias.asname or alias.name for alias in node.names]
        elif isinstance(node, ast.Assign) and any(
            getattr(target, "id", None) == "__all__" for target in node.targets
        ):
            names = ast.literal_eval(node.value)
    return [name for name in imports if not name.startswith("_")], names


def in_order(name):
    """Sort key of ruff's RUF022: CONSTANTS, then Classes, then functions."""
    group = 0 if name.isupper() else 1 if name[0].isupper() else 2
    return group, name


def is_public(cls):
    return hasattr(
        getattr(keras_tfm, cls.__module__.split(".")[1]), cls.__name__
    )


def is_base(cls):
    """Tell if nobody makes instances: abstract, or a hidden parent."""
    abstract = any(
        getattr(getattr(cls, name, None), "__isabstractmethod__", False)
        for name in dir(cls)
    )
    return abstract or (cls.__subclasses__() and not is_public(cls))


def serialisable_classes():
    """Yield the Keras classes of the tensor wing that a model may hold."""
    modules = [
        importlib.import_module(dotted(path))
        for path in LEAVES
        if path.relative_to(PACKAGE).parts[0] in TENSOR_WING
    ]
    for module in modules:
        for name, cls in inspect.getmembers(module, inspect.isclass):
            if (
                cls.__module__ == module.__name__
                and issubclass(cls, SERIALISABLE)
                and not name.startswith("_")
                and not is_base(cls)
            ):
                yield cls


def project_files():
    """Return the files that git tracks or would track."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
    try:
        listing = subprocess.run(
            command, cwd=ROOT, capture_output=True, check=True, text=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):  # No git, or no checkout.
        folders = ("keras_tfm", "tests", "examples", "benchmarks", "docs")
        found = [*ROOT.glob("*.*")]
        found += [path for name in folders for path in (ROOT / name).rglob("*")]
        found = [path for path in found if "__pycache__" not in path.parts]
    else:
        found = [ROOT / name for name in listing.split("\0") if name]
    return [path for path in found if path.is_file()]


def test_every_module_fits_on_a_few_screens():
    lengths = {
        relative(path): len(path.read_text(encoding="utf-8").splitlines())
        for path in MODULES
    }
    assert not {k: v for k, v in lengths.items() if v > MAX_LINES}


def test_every_module_says_what_it_is_for():
    silent = [
        relative(path) for path in MODULES if not ast.get_docstring(tree(path))
    ]
    assert not silent


def test_modules_import_leaves_and_never_packages():
    offenders = [
        (relative(path), name)
        for path in MODULES
        if path != PACKAGE / "__init__.py"  # It hands out the packages.
        for name in imported_modules(tree(path))
        if not is_leaf(name)
    ]
    assert not offenders


def test_no_module_asserts():
    offenders = [
        f"{relative(path)}:{node.lineno}"
        for path in MODULES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Assert)
    ]
    assert not offenders


def test_mask_constants_come_from_the_dtype_in_use():
    offenders = [
        (relative(path), value)
        for path in MODULES
        if path.relative_to(PACKAGE).parts[0] in ("ops", "layers")
        for value in harmful_constants(tree(path))
    ]
    assert not offenders


@pytest.mark.parametrize(
    "source", ["x = -1e9", "x = -1e4", "x = -10000", "x = 1e9", "f(1 - 1e30)"]
)
def test_a_harmful_constant_would_be_found(source):
    assert list(harmful_constants(ast.parse(source)))


@pytest.mark.parametrize("source", ["x = 1e4", "x = -1", "x = 2**31", "x = -y"])
def test_a_harmless_constant_is_left_alone(source):
    assert not list(harmful_constants(ast.parse(source)))


def test_every_module_has_its_test():
    missing = []
    for path in LEAVES:
        inside = path.relative_to(PACKAGE)
        mirror = (TESTS / inside).with_name(f"test_{inside.name}")
        expected = TESTED_ELSEWHERE.get(inside.as_posix(), relative(mirror))
        if not (ROOT / expected).is_file():
            missing.append(f"{relative(path)} needs {expected}")
    assert not missing, "\n".join(missing)


def test_the_list_of_modules_tested_elsewhere_is_not_stale():
    assert not [
        name for name in TESTED_ELSEWHERE if not (PACKAGE / name).is_file()
    ]


def test_every_serialisable_class_is_registered_under_its_name():
    wrong = {
        cls.__name__: keras.saving.get_registered_name(cls)
        for cls in serialisable_classes()
        if keras.saving.get_registered_name(cls) != f"keras_tfm>{cls.__name__}"
    }
    assert not wrong


def test_importing_the_package_finds_every_serialisable_class(fresh_process):
    names = [f"keras_tfm>{cls.__name__}" for cls in serialisable_classes()]
    snippet = """
        import sys

        import keras
        import keras_tfm

        for name in sys.argv[1:]:
            if keras.saving.get_registered_object(name) is None:
                print("unknown:", name)
    """
    assert "unknown:" not in fresh_process(snippet, *names)


def test_every_serialisable_class_is_public():
    hidden = [c.__name__ for c in serialisable_classes() if not is_public(c)]
    assert not hidden


@pytest.mark.parametrize("path", PACKAGES, ids=dotted)
def test_the_public_names_are_complete_sorted_and_exist(path):
    imports, names = exported(tree(path))
    assert set(imports) <= set(names or [])
    assert list(names or []) == sorted(set(names or []), key=in_order)
    package = importlib.import_module(dotted(path))
    assert not [name for name in names or [] if not hasattr(package, name)]


def test_no_file_or_folder_has_a_vague_name():
    vague = [
        relative(path)
        for path in project_files()
        if VAGUE_NAMES & {*path.relative_to(ROOT).parts[:-1], path.stem}
    ]
    assert not vague


def test_no_file_names_a_place_on_one_machine():
    place = re.compile(r"(?<![\w.\-\])}])/(work|root|home|Users)/\w+")
    offenders = []
    for path in project_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # A binary file.
        offenders += [(relative(path), m[0]) for m in place.finditer(text)]
    assert not offenders
