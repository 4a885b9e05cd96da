"""One module of a package is had without the rest, and nobody else notices."""

import subprocess
import sys
from pathlib import Path

import pytest

MODULE_UTILS = Path(__file__).resolve().parents[4] / "plugins" / "module_utils"


@pytest.fixture
def python(tmp_path):
    """Runs code in a Python that has made no import yet, beside a package that says what is imported."""
    package = tmp_path / "heavy"
    package.mkdir()
    (package / "__init__.py").write_text("print('heavy')\nfrom . import light, ballast\n")
    (package / "light.py").write_text("from . import feather\nprint('light')\n")
    (package / "feather.py").write_text("print('feather')\n")
    (package / "ballast.py").write_text("print('ballast')\n")
    (tmp_path / "plain.py").write_text("")
    (tmp_path / "importing.py").write_text((MODULE_UTILS / "importing.py").read_text())

    def run(code):
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.split()

    return run


def test_only_what_the_module_itself_needs_is_imported(python):
    assert python("import importing; importing.alone('heavy', 'light')") == ["feather", "light"]


def test_whoever_imports_the_package_later_gets_all_of_it(python):
    said = python("import importing; importing.alone('heavy', 'light'); import heavy; print(heavy.ballast, heavy.light)")
    assert said[:6] == ["feather", "light", "heavy", "feather", "light", "ballast"]
    assert len(said) > 6


def test_a_package_that_is_there_already_is_used(python):
    code = "import heavy, importing; print(importing.alone('heavy', 'light') is heavy.light)"
    assert python(code)[-1] == "True"


def test_a_package_that_cannot_be_taken_apart_is_imported_as_a_whole(python):
    code = """
import importing, pathlib
pathlib.Path("heavy/light.py").write_text("import heavy; heavy.ballast; print('light')")
pathlib.Path("heavy/__init__.py").write_text("from . import ballast; print('heavy')")
importing.alone('heavy', 'light')
"""
    assert python(code)[-2:] == ["heavy", "light"]


@pytest.mark.parametrize(("package", "module"), [("missing", "parser"), ("plain", "parser"), ("heavy", "missing")])
def test_what_is_not_there_is_an_import_error(python, package, module):
    code = f"import importing\ntry: importing.alone({package!r}, {module!r})\nexcept ImportError as error: print('no', error)"
    assert "no" in python(code)


def test_the_real_parser_needs_no_http_server(python):
    code = "import importing, sys; importing.alone('prometheus_client', 'parser'); print('wsgiref' in sys.modules)"
    assert python(code) == ["False"]
