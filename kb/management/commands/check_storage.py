import json
from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.core.files.storage import default_storage
from django.core.management.base import BaseCommand, CommandError, CommandParser

from config.object_store import is_object_store
from kb.storage_check import access_policy, check_storage, cors_policy


class Command(BaseCommand):
    help = (
        "Write, read and delete a file where files are kept; of a bucket also send one as a browser does, and print the policies to apply."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--origin", help="where browsers come from, such as https://kb.example.org (default: LECTERN_SITE_URL)")
        parser.add_argument("--json", action="store_true", help="one JSON object a line")

    def handle(self, *args: Any, **options: Any) -> None:
        origin = options["origin"] or "/".join(settings.SITE_URL.split("/")[:3])
        failed = []
        for step in check_storage(origin):
            self.stdout.write(
                json.dumps(asdict(step)) if options["json"] else f"{'ok ' if step.is_well else 'BAD'} {step.name}: {step.message}"
            )
            failed += [] if step.is_well else [step.name]
        if is_object_store() and not options["json"]:
            bucket = default_storage.bucket_name
            self.stdout.write(f"\nCORS of the bucket (aws s3api put-bucket-cors --bucket {bucket} --cors-configuration file://cors.json):")
            self.stdout.write(cors_policy(origin))
            self.stdout.write("\nRights of the key:")
            self.stdout.write(access_policy(bucket))
        if failed:
            raise CommandError(f"The storage does not do what is needed: {', '.join(failed)}.")
