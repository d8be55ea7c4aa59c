from django.apps import AppConfig


class LecternConfig(AppConfig):
    """The project itself: checks and commands that belong to no app."""

    name = "config"
    label = "lectern"
    verbose_name = "Lectern"
