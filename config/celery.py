"""The Celery application: `celery -A config worker`."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
# The checks import every page, and with them 30 MB that no worker needs; `manage.py check` and `migrate` have run them.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

from celery import Celery, Task
from django.conf import settings

from config.tenancy import everyone, nobody


class Serving(Task):
    """A task serves nobody until it knows what it works on; with `everyone=True` it looks across all organizations."""

    abstract = True
    everyone = False

    def __call__(self, *arguments, **options):
        with everyone() if self.everyone else nobody():
            return super().__call__(*arguments, **options)


app = Celery("lectern", task_cls=Serving)
app.add_defaults(lambda: settings.CELERY)
app.autodiscover_tasks()
