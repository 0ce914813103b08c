"""Checks that the README shows what the package prints today."""

import ast
import doctest
import inspect
import json
import os
import pathlib
import re

import numpy as np
import pytest

import kernels_rs

TEXT = (pathlib.Path(__file__).parent.parent / "README.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", TEXT, re.S)


def test_the_first_example_prints_what_is_shown():
    example = next(text for language, text in BLOCKS if language == "python")
    names = {}
    exec(example, names)
    np.testing.assert_array_equal(names["y"], 2.0)
    printed = [text.rstrip("…\n") for language, text in BLOCKS if language == "text"]
    source = re.search(r'"""(.*?)"""', example, re.S).group(1)
    with pytest.raises(kernels_rs.LaunchError) as raised:
        names["saxpy"](2.0, np.ones(5, np.float32), np.ones(4, np.float32))
    assert printed[0] == str(raised.value)
    without = re.sub(r"    if i < y.len\(\) \{\n    (.*)\n    \}\n", r"\1\n", source)
    with pytest.raises(kernels_rs.Violation) as raised:
        kernels_rs.compile(without)(2.0, np.ones(5, np.float32), np.ones(5, np.float32))
    assert str(raised.value).startswith(printed[1]), str(raised.value)
    with pytest.raises(kernels_rs.CompileError) as raised:
        kernels_rs.compile(source.replace("y[i]);", "z);"))
    assert printed[2] == str(raised.value)


def test_every_function_is_listed():
    named = set(re.findall(r"`(\w+)`", TEXT))
    functions = {name for name in kernels_rs.__all__ if name[0].islower() and name not in ("array", "asarray", "numpy")}
    assert functions - named <= {"compile", "describe", "devices", "zeros"}, functions - named


def test_the_chapter_of_the_guide_runs():
    root = pathlib.Path(__file__).parents[3]
    chapter = root / "kernels-rs/guide/chapters/15_python.md"
    if not chapter.exists():
        pytest.skip("this is no checkout of kernels-rs")
    names = {}
    for block in re.findall(r"```python\n(.*?)```", chapter.read_text(), re.S):
        if "import torch" in block:
            pytest.importorskip("torch")
        exec(block, names)


@pytest.mark.parametrize("name", ["kernels", "training"])
def test_notebooks(name, capsys):
    """Runs the cells of a notebook, and compares what they print. UPDATE=1 writes the outputs."""
    path = pathlib.Path(__file__).parent.parent / f"examples/{name}.ipynb"
    if not path.exists():
        pytest.skip("this is no checkout of kernels-rs")
    notebook, names = json.loads(path.read_text()), {}
    for number, cell in enumerate(cell for cell in notebook["cells"] if cell["cell_type"] == "code"):
        source = "".join(cell["source"])
        if "import torch" in source:
            pytest.importorskip("torch")
        exec(compile(source, f"{path.name}, cell {number}", "exec"), names)
        printed = capsys.readouterr().out
        kept = "".join(text for output in cell["outputs"] for text in output["text"])
        if os.environ.get("UPDATE") == "1":
            stream = {"name": "stdout", "output_type": "stream", "text": printed.splitlines(keepends=True)}
            cell["outputs"] = [stream] if printed else []
        else:
            assert printed == kept, source
    if os.environ.get("UPDATE") == "1":
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


def test_examples_of_the_documentation():
    """Runs the examples of the functions' documentation."""
    from kernels_rs import _library

    failed, tried = doctest.testmod(_library, extraglobs={"np": np, "kernels_rs": kernels_rs}, optionflags=doctest.ELLIPSIS)
    assert failed == 0 and tried >= 29, (failed, tried)


def test_stubs_have_the_names_and_parameters_of_the_package():
    tree = ast.parse((pathlib.Path(kernels_rs.__file__).parent / "__init__.pyi").read_text())
    stubs = {item.name: item for item in tree.body if isinstance(item, (ast.FunctionDef, ast.ClassDef))}
    assert set(kernels_rs.__all__) - {"__version__"} <= set(stubs), set(kernels_rs.__all__) - set(stubs)
    for name in kernels_rs.__all__:
        function, stub = getattr(kernels_rs, name), stubs.get(name)
        if not isinstance(stub, ast.FunctionDef):
            continue
        arguments = stub.args
        named = [argument.arg for argument in (*arguments.args, *arguments.kwonlyargs)]
        parameters = inspect.signature(function).parameters.values()
        assert set(named) == {parameter.name for parameter in parameters}, name
        places = [p.name for p in parameters if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
        assert [argument.arg for argument in arguments.args] == places, name


def test_modules_of_pytorch_are_listed_and_exported():
    pytest.importorskip("torch")
    from kernels_rs import modules

    for name in modules.__all__:
        assert getattr(kernels_rs, name) is getattr(modules, name)
        assert f"`{name}`" in TEXT or f"`{name}(" in TEXT or name == "Patched"
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        kernels_rs.Nothing
    assert callable(kernels_rs.fake_quantize) and "`fake_quantize`" in TEXT
