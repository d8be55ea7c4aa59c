"""The Celery application: `celery -A config worker`."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

from celery import Celery
from django.conf import settings

app = Celery("lectern")
app.add_defaults(lambda: settings.CELERY)
app.autodiscover_tasks()
