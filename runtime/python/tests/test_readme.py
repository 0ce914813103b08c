"""Checks that the README shows what the package prints today."""

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


def test_modules_of_pytorch_are_listed_and_exported():
    pytest.importorskip("torch")
    from kernels_rs import modules

    for name in modules.__all__:
        assert getattr(kernels_rs, name) is getattr(modules, name)
        assert f"`{name}`" in TEXT or f"`{name}(" in TEXT or name == "Patched"
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        kernels_rs.Nothing
    assert callable(kernels_rs.fake_quantize) and "`fake_quantize`" in TEXT
