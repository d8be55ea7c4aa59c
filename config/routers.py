"""One database, two roles: only the owner's alias may migrate."""


class OneSchema:
    """Everything is read and written through `default`; tables are made through `owner`."""

    def db_for_read(self, model, **hints) -> str:
        return "default"

    def db_for_write(self, model, **hints) -> str:
        return "default"

    def allow_relation(self, first, second, **hints) -> bool:
        return True

    def allow_migrate(self, db: str, app_label: str, **hints) -> bool:
        return db == "owner"
