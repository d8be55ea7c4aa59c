"""What follows from rows that go by ways of Django's own, such as the deletion of an account in the admin."""

from django.db.models.signals import pre_delete
from django.dispatch import receiver

from kb.models import ApiKey, Role, User


@receiver(pre_delete, sender=User)
def demote_keys(instance: User, **_: object) -> None:
    """Keys of a deleted account go on as a viewer's, as those of a removed member do: nobody is left to cap them."""
    ApiKey.objects.filter(created_by=instance).update(role=Role.VIEWER)
