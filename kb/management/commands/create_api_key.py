from django.core.management.base import BaseCommand, CommandError

from kb import services
from kb.models import Organization, Role


class Command(BaseCommand):
    help = "Make an API key and print its value, which is shown only this once."

    def add_arguments(self, parser) -> None:
        parser.add_argument("name")
        parser.add_argument("--role", choices=Role.values, default=Role.VIEWER)
        parser.add_argument("--organization", help="name (default: the oldest one)")

    def handle(self, *args, name: str, role: str, organization: str | None, **options) -> None:
        rows = Organization.objects.filter(state=Organization.State.ACTIVE).order_by("created_at")
        found = rows.filter(name=organization).first() if organization else rows.first()
        if found is None:
            known = ", ".join(rows.values_list("name", flat=True)) or "none; run bootstrap first"
            raise CommandError(f"There is no such organization. Known: {known}.")
        _, value = services.create_api_key(found, name=name, role=role)
        self.stdout.write(value)
