"""The Celery application: `celery -A config worker`."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
# The checks import every page, and with them 30 MB that no worker needs; `manage.py check` and `migrate` have run them.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

from celery import Celery
from django.conf import settings

app = Celery("lectern")
app.add_defaults(lambda: settings.CELERY)
app.autodiscover_tasks()
