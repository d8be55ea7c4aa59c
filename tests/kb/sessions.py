"""Signed-in clients of the admin."""

from django.test import Client


def enter(user) -> Client:
    client = Client()
    client.force_login(user)
    return client


def staff(user) -> Client:
    user.is_staff = True
    user.save()
    return enter(user)
