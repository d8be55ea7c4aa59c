"""Where files are kept is checked when a process starts, not at the first upload."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]


def test_an_object_store_without_its_library_is_told_at_the_start():
    named = {"LECTERN_STORAGE": "s3", "LECTERN_S3_BUCKET": "files", "LECTERN_SECRET_KEY": "k" * 40}
    named |= {"DJANGO_SETTINGS_MODULE": "config.settings"}
    command = [sys.executable, "-c", "import django; django.setup()"]
    ended = subprocess.run(command, cwd=PROJECT, env={**os.environ, **named}, capture_output=True, text=True, timeout=60)
    if find_spec("boto3") is None:
        assert ended.returncode != 0
        assert "needs the package boto3" in ended.stderr
    else:
        assert ended.returncode == 0, ended.stderr
