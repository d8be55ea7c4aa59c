"""What `manage.py check --deploy` says about this machine."""

from typing import Any

from django.core import checks

from ingestion.render import missing


@checks.register("render", deploy=True)
def check_browser(**_: Any) -> list[checks.CheckMessage]:
    """Rendering is a choice, so neither answer is a fault."""
    lacking = missing()
    if lacking:
        return [checks.Info("Pages that need JavaScript are not rendered here.", hint=lacking, id="ingestion.I001")]
    return [checks.Info("Pages that need JavaScript are rendered here, for sources with web.render: auto.", id="ingestion.I002")]
