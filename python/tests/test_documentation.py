"""Every public name of the package has a docstring, and every number a unit."""

import ast
import enum
import importlib
import inspect
import re

import pdoc.doc
import pytest
from conftest import ROOT

# What `make docs-python` shows.
MODULES = re.search(
    r"^PYTHON_MODULES := (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
)[1].split()
# What says the unit of a number: the end of its name, or its docstring. Counts have the unit 1.
SUFFIX = re.compile(r"_(s|bytes|bps|kB|kBps)$")
TEXT = re.compile(
    r"\b(seconds?|bytes?|bit/s|packets?|steps|numbers?|seed|counts?|how many|how often|ratio|share"
    r"|correlation|index|unit|from 1|halvings|version|part|parts)\b",
    re.IGNORECASE,
)
NUMBER = re.compile(r"\b(int|float)\b")


def documented(module):
    """All public names of a module, with those of its classes."""
    for doc in pdoc.doc.Module(importlib.import_module(module)).members.values():
        if doc.name.startswith("_"):
            continue
        yield doc
        if isinstance(doc, pdoc.doc.Class):
            yield from (
                member
                for member in doc.own_members
                if member.name == "__init__" or not member.name.startswith("_")
            )


def speaks_for_itself(doc):
    """The docstring of a class describes how it is made; members of enums have values."""
    return doc.name == "__init__" or isinstance(getattr(doc, "default_value", None), enum.Enum)


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_has_a_docstring(module):
    undocumented = (doc for doc in documented(module) if not doc.docstring)
    assert [doc.fullname for doc in undocumented if not speaks_for_itself(doc)] == []


@pytest.mark.parametrize("module", MODULES)
def test_every_number_has_a_unit(module):
    without = []
    for doc in documented(module):
        if isinstance(doc, pdoc.doc.Function):
            returned = str(doc.signature.return_annotation)
            is_number = re.fullmatch(r"<class '(int|float)'>|int|float", returned) is not None
        else:
            is_number = NUMBER.search(getattr(doc, "annotation_str", "")) is not None
        if is_number and not SUFFIX.search(doc.name) and not TEXT.search(doc.docstring):
            without.append(doc.fullname)
    assert without == []


def stubs():
    """The public classes of the extension module's stubs: docstrings and annotations by name."""
    tree = ast.parse((ROOT / "python" / "comity" / "_comity.pyi").read_text(encoding="utf-8"))
    for node in tree.body:
        if not isinstance(node, ast.ClassDef) or ast.get_docstring(node) is None:
            continue
        members = {}
        for item, following in zip(node.body, [*node.body[1:], None]):
            if isinstance(item, ast.FunctionDef) and not item.name.startswith("_"):
                members[item.name] = (ast.get_docstring(item), "")
            elif isinstance(item, ast.AnnAssign):
                is_text = isinstance(following, ast.Expr)
                text = inspect.cleandoc(following.value.value) if is_text else None
                members[item.target.id] = (text, ast.unparse(item.annotation))
        yield node.name, ast.get_docstring(node), members


def test_the_stubs_say_what_the_extension_module_says():
    native = importlib.import_module("comity._comity")
    classes = 0
    for name, text, members in stubs():
        classes += 1
        actual = getattr(native, name)
        assert inspect.getdoc(actual).startswith(text), name
        for member, (says, annotation) in members.items():
            assert says, f"{name}.{member} has no docstring"
            if NUMBER.search(annotation):
                assert SUFFIX.search(member) or TEXT.search(says), f"{name}.{member} has no unit"
            if name == "Controller" and not hasattr(actual, member):
                assert f"`{member}" in inspect.getdoc(actual), member
            else:
                described = inspect.getdoc(getattr(actual, member))
                assert described.split() == says.split(), f"{name}.{member}"
    assert classes > 10


def test_every_public_module_is_in_the_reference():
    package = ROOT / "python" / "comity"
    modules = {path.stem for path in package.glob("[!_]*.py")}
    modules |= {path.parent.name for path in package.glob("[!_]*/__init__.py")}
    assert {"comity", *(f"comity.{name}" for name in modules)} == set(MODULES)


def test_a_name_without_a_docstring_is_found(tmp_path, monkeypatch):
    (tmp_path / "undocumented.py").write_text(
        '"""A module."""\n\ndef f() -> float:\n    pass\n\nclass C:\n    """A class."""\n\n    x: int\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    missing = [doc.fullname for doc in documented("undocumented") if not doc.docstring]
    assert {"undocumented.f", "undocumented.C.x"} <= set(missing)
