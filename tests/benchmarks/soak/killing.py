"""Sudden deaths: members of the fleet, Postgres, Valkey, and what Valkey remembers."""

import contextlib
import os
import random
import signal
import time
from collections.abc import Sequence

import redis

from tests.benchmarks.soak.ground import Ground, say

MEMBERS = ("web", "main", "extract", "embed", "beat")
SERVICES = ("postgres-immediate", "postgres-kill", "valkey-kill")


def _victims(ground: Ground) -> Sequence[str]:
    """Those that work die more often than those that only watch."""
    return (*MEMBERS, "extract", "embed", "flush", *(SERVICES if ground.home else ()))


class Killer:
    """Kills by chance and lets live again. Only processes of this ground are ever touched, each by its number."""

    def __init__(self, ground: Ground, chance: random.Random) -> None:
        self.ground = ground
        self.chance = chance
        self.kills = 0

    def strike(self) -> None:
        """One death, and the return after a moment."""
        victim = self.chance.choice(_victims(self.ground))
        say(f"  kills {victim}")
        self.kills += 1
        if victim == "flush":
            with contextlib.suppress(redis.RedisError):
                self._redis().flushdb()
            return
        if victim in SERVICES:
            self._strike_service(victim)
            return
        names = [victim, *self.chance.sample(MEMBERS, self.chance.choice((0, 0, 1)))]
        for name in names:
            self.ground.fleet.kill(name)
        time.sleep(self.chance.uniform(0, 1.5))
        self.ground.fleet.start(*names)

    def _redis(self) -> redis.Redis:
        return redis.Redis.from_url(self.ground.environment["REDIS_URL"], socket_timeout=5)

    def _strike_service(self, victim: str) -> None:
        from config.embedded import running

        services = running(self.ground.home)
        pid = services and (services.valkey_pid if victim == "valkey-kill" else services.postgres_pid)
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGQUIT if victim == "postgres-immediate" else signal.SIGKILL)
        time.sleep(self.chance.uniform(0.2, 2))
        restore_services(self.ground)


def restore_services(ground: Ground, *, seconds: float = 60) -> None:
    """Postgres and Valkey up again on their ports. Backends of a killed Postgres need a moment to notice."""
    from config.embedded import ServiceError, start_services

    deadline = time.monotonic() + seconds
    while ground.home:
        try:
            services = start_services(home=ground.home)
        except ServiceError as error:
            if time.monotonic() > deadline:
                raise
            say(f"  services do not start yet: {str(error)[-200:]}")
            time.sleep(1)
            continue
        assert services.database_url == ground.environment["DATABASE_URL"], "Postgres came back on another port"
        assert services.redis_url == ground.environment["REDIS_URL"], "Valkey came back on another port"
        return


def restore(ground: Ground) -> None:
    """Everything up; a member that ended by itself is started as a supervisor would."""
    restore_services(ground)
    ground.fleet.start()
    ground.fleet.wait_ready()
