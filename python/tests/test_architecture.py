"""No two modules of the package, or of a folder of benches, import each other."""

import ast

import pytest
from conftest import ROOT

FOLDERS = [ROOT / "python" / "comity", ROOT / "benches", *(ROOT / "benches").glob("*/")]


def sources(folder):
    """The modules of a package, or of a folder of scripts, by the parts of their names."""
    is_package = (folder / "__init__.py").exists()
    found = {}
    # The native module of the package has a file of types.
    for path in folder.rglob("*.py*") if is_package else folder.glob("*.py"):
        if path.suffix not in (".py", ".pyi"):
            continue
        parts = path.relative_to(folder.parent if is_package else folder).with_suffix("").parts
        found[parts[:-1] if parts[-1] == "__init__" else parts] = path.read_text(encoding="utf-8")
    return found


def for_types_only(node):
    """Whether this is `if typing.TYPE_CHECKING:`, which no run enters."""
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def imports(node):
    """The imports below a node, those of functions too."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child
        elif not for_types_only(child):
            yield from imports(child)


def needs(modules, name):
    """The other modules that a module imports from."""
    packages = {other[:-1] for other in modules} - {()}
    for node in imports(ast.parse(modules[name])):
        if isinstance(node, ast.Import):
            found = [tuple(alias.name.split(".")) for alias in node.names]
        else:
            package = name if name in packages else name[:-1]
            base = package[: len(package) + 1 - node.level] if node.level else ()
            base += tuple((node.module or "").split(".")) if node.module else ()
            found = [base + (alias.name,) for alias in node.names]
            found = [each if each in modules else base for each in found]
        yield from (each for each in found if each in modules and each != name)


def circle(modules):
    """Modules that need each other, in order; none if there are none."""
    after = {name: set(needs(modules, name)) for name in modules}
    while leaves := [name for name in after if not after[name]]:
        after = {name: after[name] - set(leaves) for name in after if name not in leaves}
    # What is left also holds modules that only lead to a circle.
    while users := [name for name in after if not any(name in needed for needed in after.values())]:
        after = {name: needed for name, needed in after.items() if name not in users}
    return sorted(".".join(name) for name in after)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(ROOT)))
def test_modules_go_in_no_circle(folder):
    assert circle(sources(folder)) == []


def test_a_circle_is_found():
    def package(a):
        texts = {"a": a, "b": "from .c import h", "c": "from .a import f"}
        return {("p", name): text for name, text in texts.items()} | {("p",): "from .a import f"}

    for text in [
        "from .b import g",
        "from . import b",
        "import p.b",
        "from p.b import g",
        "def f():\n    from .b import g",
    ]:
        assert circle(package(text)) == ["p.a", "p.b", "p.c"], text
    assert circle(package("from . import d")) == ["p", "p.a"], "the package defines it"
    for text in ["", "import b", "if typing.TYPE_CHECKING:\n    from .b import g"]:
        assert circle(package(text)) == [], text
    assert circle({("a",): "import b", ("b",): "from a import f", ("c",): "import a"}) == ["a", "b"]
