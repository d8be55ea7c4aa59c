"""Passwords and keys of the embedded services."""

import stat

import pytest

from config.embedded import ServiceError, secret_key


def test_credentials_are_kept_private_and_guarded(tmp_path):
    key = secret_key(tmp_path)
    assert len(key) >= 32
    assert secret_key(tmp_path) == key
    file = tmp_path / "credentials.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.write_text("{")
    with pytest.raises(ServiceError, match="damaged"):
        secret_key(tmp_path)
    file.unlink()
    (tmp_path / "postgres" / "data").mkdir(parents=True)
    with pytest.raises(ServiceError, match="missing"):
        secret_key(tmp_path)
