"""Files in an S3-compatible store. Imported only where LECTERN_STORAGE is s3: the client is a package of its own."""

from typing import Any

from botocore.config import Config

from config.env import Environment


def s3_storage(environment: Environment) -> dict[str, Any]:
    """Django's description of the storage. What is not Amazon's gets what all of them understand: the bucket in the path, and no
    checksums beyond the protocol's own."""
    elsewhere = bool(environment.s3_endpoint)
    config = Config(
        connect_timeout=5,
        read_timeout=30,
        retries={"mode": "standard", "total_max_attempts": 3},
        s3={"addressing_style": "path" if elsewhere else "auto"},
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    return {
        "BACKEND": "storages.backends.s3.S3Storage",
        "OPTIONS": {
            "bucket_name": environment.s3_bucket,
            "endpoint_url": environment.s3_endpoint,
            "region_name": environment.s3_region,
            "access_key": environment.s3_access_key,
            "secret_key": environment.s3_secret_key,
            "default_acl": None,
            "file_overwrite": False,
            "client_config": config,
        },
    }
