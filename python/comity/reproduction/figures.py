"""Finds the claims in the files of a folder of experiments."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from .claims import Claim

__all__ = ["found_in"]


def found_in(folder: Path) -> list[tuple[str, Claim]]:
    """The claims of all figures below a folder, each with the name of its system, that of the
    folder it is in.
    """
    found = []
    for file in sorted(folder.glob("*/[!_]*.py")):
        beside = file.parent / "__init__.py"
        if beside.exists() and "comity.reproduction" in file.read_text(encoding="utf-8"):
            package = _package(beside)
            module = importlib.import_module(f"{package}.{file.stem}")
            claims = [value for value in vars(module).values() if isinstance(value, Claim)]
            found += [
                (file.parent.name, _placed(claim, file.parent, sys.modules[package], module))
                for claim in claims
            ]
    return found


def _package(file: Path) -> str:
    """Imports a folder of figures as a package of its own, so that its files may import from each
    other.
    """
    name = "figures_" + "_".join(
        part for part in file.resolve().parent.parts if part.isidentifier()
    )
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(
            name, file, submodule_search_locations=[str(file.parent)]
        )
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return name


def _placed(claim: Claim, folder: Path, package: ModuleType, module: ModuleType) -> Claim:
    """The claim with the paths of its scenarios from here, and what its files say about it."""
    scenarios = {
        name: dataclasses.replace(scenario, path=str(folder / scenario.path))
        for name, scenario in claim.scenarios.items()
    }
    about = (module.__doc__ or "").partition("\n\n")[2].strip()
    return dataclasses.replace(claim, scenarios=scenarios, paper=package.__doc__ or "", about=about)
