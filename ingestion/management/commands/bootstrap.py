import os
import secrets
from pathlib import Path

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import transaction

from ingestion.schedules import arm_schedules, ensure_beat_schedule
from kb import services
from kb.embedding import ensure_space
from kb.models import EmbeddingModel, Organization, User
from kb.providers.tokens import PACKAGED_MODEL
from kb.stores.provision import provision_space


class Command(BaseCommand):
    help = "Make what an empty installation needs: an organization, the default embedding model, an administrator, the beat's schedule."

    def handle(self, *args, **options) -> None:
        organization = Organization.objects.order_by("created_at").first() or services.create_organization(name="Default")
        model, made = EmbeddingModel.objects.get_or_create(
            organization=None,
            name=PACKAGED_MODEL,
            defaults={
                "provider": "local",
                "model": PACKAGED_MODEL,
                "dimension": 384,
                "max_input_tokens": 256,
                "is_default": not EmbeddingModel.objects.filter(organization=None, is_default=True).exists(),
            },
        )
        provision_space(ensure_space(model))
        if made:
            self.stdout.write(f"Registered the embedding model {model.name}.")
        if not User.objects.exists():
            self._make_administrator(organization)
        ensure_beat_schedule()
        arm_schedules()

    def _make_administrator(self, organization: Organization) -> None:
        password = secrets.token_urlsafe(12)
        with transaction.atomic():
            user = User.objects.create_superuser("admin", password=password)
            services.add_member(organization, user=user, role="admin")
        path = Path(settings.HOME) / "admin-password"
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(password + "\n")
        self.stdout.write(f"Made the user admin; its password is in {path}. Change it and remove the file.")
