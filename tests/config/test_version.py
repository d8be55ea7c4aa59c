import tomllib
from pathlib import Path

from config.version import VERSION


def test_the_project_says_the_same_version():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["version"] == VERSION
