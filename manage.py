#!/usr/bin/env python
"""Lectern's commands."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    from django.core.management import execute_from_command_line
    from django.db.utils import OperationalError

    from config.tenancy import everyone

    try:
        with everyone():
            execute_from_command_line(sys.argv)
    except OperationalError as error:
        reason = str(error).strip().splitlines()[0]
        raise SystemExit(
            f"The database cannot be reached: {reason}\nStart the stack with `make up`, or set DATABASE_URL to a Postgres that runs."
        ) from error


if __name__ == "__main__":
    main()
