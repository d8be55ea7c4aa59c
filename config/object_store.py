"""Files in an S3-compatible store, and what a storage of any kind raises. The client is a package of its own, and asked for
where it is used."""

from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from typing import Any

from django.core.files.storage import default_storage

from config.env import Environment

S3 = "storages.backends.s3.S3Storage"
# Of a file that is read, so much stays in memory.
IN_MEMORY_BYTES = 8 * 1024 * 1024


def s3_storage(environment: Environment) -> dict[str, Any]:
    """Django's description of the storage. What is not Amazon's gets what all of them understand: the bucket in the path, and no
    checksums beyond the protocol's own."""
    return {
        "BACKEND": S3,
        "OPTIONS": {
            "bucket_name": environment.s3_bucket,
            "endpoint_url": environment.s3_endpoint,
            "region_name": environment.s3_region,
            "access_key": environment.s3_access_key,
            "secret_key": environment.s3_secret_key,
            "default_acl": None,
            "file_overwrite": False,
            "max_memory_size": IN_MEMORY_BYTES,
            "client_config": _client_config(elsewhere=bool(environment.s3_endpoint)),
        },
    }


def is_object_store() -> bool:
    """Whether files are in a bucket, and not in a folder of this machine."""
    return hasattr(default_storage, "bucket_name")


def faults() -> tuple[type[Exception], ...]:
    """What a storage raises: an object store's client has errors of its own."""
    return (OSError, *_client_faults()) if is_object_store() else (OSError,)


def words(error: Exception) -> str:
    """What a storage says of its failure."""
    return getattr(error, "strerror", None) or str(error)


def presigned_put(key: str, *, size: int, media_type: str, expires_in: timedelta, endpoint: str | None) -> tuple[str, Mapping[str, str]]:
    """An address that takes exactly so many bytes of that type once it is asked, and the headers that have to be sent with them. `endpoint`
    is how browsers reach the store, if otherwise than we do. The bytes themselves are checked when the upload is completed."""
    asked = {"Bucket": default_storage.bucket_name, "Key": key, "ContentLength": size, "ContentType": media_type}
    url = _signing_client(endpoint).generate_presigned_url("put_object", Params=asked, ExpiresIn=int(expires_in.total_seconds()))
    return url, {"Content-Type": media_type}


def _signing_client(endpoint: str | None) -> Any:
    known = default_storage.connection.meta.client
    if not endpoint:
        return known
    import boto3

    keys = {"aws_access_key_id": default_storage.access_key, "aws_secret_access_key": default_storage.secret_key}
    return boto3.client("s3", endpoint_url=endpoint, region_name=default_storage.region_name, config=known.meta.config, **keys)


@cache
def _client_faults() -> tuple[type[Exception], ...]:
    from boto3.exceptions import Boto3Error
    from botocore.exceptions import BotoCoreError, ClientError

    return Boto3Error, BotoCoreError, ClientError


def _client_config(*, elsewhere: bool) -> Any:
    from botocore.config import Config

    return Config(
        connect_timeout=5,
        read_timeout=30,
        retries={"mode": "standard", "total_max_attempts": 3},
        signature_version="s3v4",
        s3={"addressing_style": "path" if elsewhere else "auto"},
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
