"""Accounts of `kb`'s tests."""

import pytest


@pytest.fixture
def admin_user(db):
    """An operator, without a password: hashing one costs more than a page, and sessions are forced."""
    from kb.models import User

    return User.objects.create(username="admin", is_staff=True, is_superuser=True)
