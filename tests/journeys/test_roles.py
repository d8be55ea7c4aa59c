"""The image's roles, each by its entry command, as an ordinary user, against given DATABASE_URL and REDIS_URL."""

import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.client import Client
from tests.fleet import ROLES, ROOT, Fleet, _inherited, free_port
from tests.installation import manage, on_tests_services

pytestmark = pytest.mark.journey

# Root's interpreter may lie where nobody else can enter; this one right stands for an environment of the user's own.
AS_NOBODY = (
    "setpriv",
    "--reuid=nobody",
    "--regid=nogroup",
    "--clear-groups",
    "--inh-caps=+dac_read_search",
    "--ambient-caps=+dac_read_search",
)


@pytest.fixture
def roles(tmp_path: Path, tmp_path_factory) -> Iterator[Fleet]:
    prefix: tuple[str, ...] = ()
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("setpriv is not installed, so root cannot run a role as somebody else")
        prefix = AS_NOBODY
        nobody = pwd.getpwnam("nobody")
        for folder in (tmp_path, *tmp_path.parents[:2]):
            folder.chmod(0o755)
        os.chown(tmp_path, nobody.pw_uid, nobody.pw_gid)
    environment = on_tests_services("lectern_roles", redis=14, home=tmp_path / "home")
    fleet = Fleet(environment, tmp_path_factory.mktemp("roles"), free_port(), prefix=prefix)
    yield fleet
    fleet.stop()


def test_every_role_runs_as_an_ordinary_user_on_given_services(roles: Fleet):
    migrated = subprocess.run(
        [*roles.prefix, sys.executable, "-m", "config.roles", "migrate"],
        cwd=ROOT,
        env={**_inherited(), **roles.environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert migrated.returncode == 0, migrated.stderr[-2000:]
    roles.start()
    roles.wait_ready()
    for name in ROLES:
        assert psutil.Process(roles.processes[name].pid).uids().real != 0 or not roles.prefix, name
    client = Client(roles.url, manage(roles.environment, "create_api_key", "roles", "--role", "admin", "--skip-checks"))
    try:
        knowledge_base, source = client.create_knowledge_base("roles")
        client.upload(knowledge_base, source, {"note.md": b"# Note\n\nThe heron stands in the shallow water."})
        assert client.ingest(knowledge_base, source)["status"] == "succeeded"
        assert "heron" in client.texts(knowledge_base, "Which bird stands in the water?")[0]
    finally:
        client.http.close()
