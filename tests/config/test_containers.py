"""Dockerfile and compose.yaml name only what exists: no container engine is needed to know that."""

import re
import shlex
from pathlib import Path

import pytest
import yaml

from config import queues
from config.roles import parse_role, worker_defaults

PROJECT = Path(__file__).resolve().parents[2]
COMPOSE = yaml.safe_load((PROJECT / "compose.yaml").read_text())
DOCKERFILE = (PROJECT / "Dockerfile").read_text()
EXTRAS = ("s3", "bpe", "render")
OURS = {name: service for name, service in COMPOSE["services"].items() if "build" in service}


def test_every_path_that_the_image_copies_exists():
    copied = [shlex.split(line)[1:] for line in DOCKERFILE.splitlines() if line.startswith("COPY ") and "--from" not in line]
    sources = [source for *names, _ in copied for source in names]
    assert sources
    assert [source for source in sources if not (PROJECT / source).exists()] == []
    ignored = (PROJECT / ".dockerignore").read_text().split()
    assert not set(ignored) & set(sources)
    packages = {path.parent.name for path in PROJECT.glob("*/__init__.py")} - {"tests"}
    assert packages <= set(sources), "every package of the product is in the image"
    named = re.findall(r"-r \"?(requirements/[\w$.-]+)", DOCKERFILE)
    assert named
    choices = {"$TORCH": ("cpu", "cuda"), "$extra": EXTRAS}
    for name in named:
        variable = next((each for each in choices if each in name), "")
        for choice in choices.get(variable, ("",)):
            assert (PROJECT / (name.replace(variable, choice) if variable else name)).is_file()


def test_the_image_runs_roles_as_an_ordinary_user():
    assert 'ENTRYPOINT ["python", "-m", "config.roles"]' in DOCKERFILE
    assert (PROJECT / "config" / "roles.py").is_file()
    users = re.findall(r"^USER (\S+)$", DOCKERFILE, re.MULTILINE)
    assert users == ["lectern"]
    assert parse_role(yaml.safe_load(re.search(r"^CMD (.*)$", DOCKERFILE, re.MULTILINE)[1])).role == "web"


@pytest.mark.parametrize("name", OURS)
def test_every_command_of_compose_is_a_role(name):
    assert parse_role(OURS[name]["command"]).role in ("web", "worker", "beat", "migrate")


def test_compose_covers_every_queue_and_role_once():
    roles = [parse_role(service["command"]) for service in OURS.values()]
    covered = [queue for role in roles if role.role == "worker" for queue in role.queues.split(",")]
    assert sorted(covered) == sorted(queues.QUEUES)
    assert sorted(role.role for role in roles if role.role != "worker") == ["beat", "migrate", "web"]


def test_compose_mounts_exist_and_the_database_gets_shared_memory():
    database = COMPOSE["services"]["postgres"]
    assert database["shm_size"] == "1gb"
    mounted = [volume.split(":")[0] for service in COMPOSE["services"].values() for volume in service.get("volumes", [])]
    for source in mounted:
        assert source in COMPOSE["volumes"] if not source.startswith("./") else (PROJECT / source).is_file()
    for service in OURS.values():
        assert set(service["depends_on"]) <= set(COMPOSE["services"])


def test_pools_fit_their_queues():
    assert worker_defaults("embed") == ("solo", 1)
    assert worker_defaults("recognize") == ("solo", 1)
    assert worker_defaults("extract") == ("threads", 2)
    assert worker_defaults("crawl,default") == ("prefork", 2)
