"""For a real worker (`celery -I tests.servers.looking`): what raw SQL sees in a task and in a slice of a run.

The stage `publish` is replaced by a look; what was seen is left in Redis under `seen`.
"""

import json

from celery import shared_task
from django.conf import settings
from django.db import Error, connection, transaction

from config.redis import redis_client
from tests.raw_sql import seen

settings.STAGES["publish"] = "tests.servers.looking:look"


def look(run, part) -> bool:
    _tell("slice", str(run.id))
    return False


@shared_task(name="tests.look")
def look_unserved(name: str) -> None:
    _tell("task", name)


@shared_task(name="tests.look_at_all", everyone=True)
def look_at_all(name: str) -> None:
    _tell("everyone", name)


def _tell(where: str, name: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user, rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user")
        told = {"where": where, "name": name, "role": list(cursor.fetchone())}
    told["alone"] = seen()
    with transaction.atomic():
        told["in a transaction"] = seen()
    try:
        with connection.cursor() as cursor:
            cursor.execute("UPDATE kb_source SET name = name || '!' RETURNING organization_id")
            told["written"] = sorted(str(row[0]) for row in cursor.fetchall())
    except Error as error:
        told["written"] = str(error)
    redis_client().rpush("seen", json.dumps(told))
