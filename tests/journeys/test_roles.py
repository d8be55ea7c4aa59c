"""The image's roles, each by its entry command, as an ordinary user, against given DATABASE_URL and REDIS_URL."""

import psutil
import pytest

from tests.client import Client
from tests.fleet import ROLES, Fleet

pytestmark = pytest.mark.journey


def test_every_role_runs_as_an_ordinary_user_on_given_services(fleet: Fleet, client: Client):
    if not fleet.prefix and psutil.Process().uids().real == 0:
        pytest.skip("setpriv is not installed, so root cannot run a role as somebody else")
    fleet.wait_ready()
    for name in ROLES:
        assert psutil.Process(fleet.processes[name].pid).uids().real != 0, name
    knowledge_base, source = client.create_knowledge_base("roles")
    client.upload(knowledge_base, source, {"note.md": b"# Note\n\nThe heron stands in the shallow water."})
    assert client.ingest(knowledge_base, source)["status"] == "succeeded"
    assert "heron" in client.texts(knowledge_base, "Which bird stands in the water?")[0]
