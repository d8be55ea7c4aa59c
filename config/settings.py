"""Django's settings, all of them from `config.env` and, where no service is given, from the embedded ones."""

import sys
from importlib.util import find_spec
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from config import queues
from config.database import impatient
from config.embedded import home, running, secret_key
from config.env import database_config, environment
from config.version import VERSION

BASE_DIR = Path(__file__).resolve().parent.parent
ENV = environment()

# --- services: given by the environment, else the embedded ones that run for this home ---------------------------------
EMBEDDED = running(home()) if not (ENV.database_url and ENV.redis_url) else None
DATABASE_URL = ENV.database_url or (EMBEDDED.database_url if EMBEDDED else None)
DATABASE_OWNER_URL = ENV.database_owner_url or ENV.database_url or (EMBEDDED.owner_url if EMBEDDED else None)
REDIS_URL = ENV.redis_url or (EMBEDDED.redis_url if EMBEDDED else "redis://127.0.0.1:6379/0")

_UNSET_DATABASE = "postgresql://lectern@127.0.0.1:5432/lectern"
_APP = database_config(DATABASE_URL or _UNSET_DATABASE)
_OWNER = database_config(DATABASE_OWNER_URL or _UNSET_DATABASE)
# Requests share a small pool (a full one answers 503); a worker keeps one connection a thread. Statements are not
# prepared and cursors live in the client, so that PgBouncer in transaction mode works.
_IN_WEB = "uvicorn" in sys.modules
# A peer that vanished without a word is noticed within a minute, also by a worker whose statement may take hours.
_DEFAULTS = {
    "connect_timeout": 5,
    "keepalives": 1,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
_COMMON = {"prepare_threshold": None}
_POOL = {
    "pool": {
        "min_size": 1,
        "max_size": ENV.db_pool_size,
        "timeout": 5,
        "reconnect_timeout": 5,  # then whoever asks next tries again; by default attempts grow minutes apart
        "connection_class": impatient(ENV.db_answer_seconds),
    }
}
DATABASES = {
    # Web and workers: a role that owns nothing, so that row-level security means something.
    "default": {
        **_APP,
        "OPTIONS": {**_DEFAULTS, **_APP.get("OPTIONS", {}), **_COMMON, **(_POOL if _IN_WEB else {})},
        "CONN_MAX_AGE": 0 if _IN_WEB else 60,
        "CONN_HEALTH_CHECKS": True,  # a restarted database costs no request, and no slice
        "DISABLE_SERVER_SIDE_CURSORS": True,
    },
    # Migrations and partitions: used by `migrate --database owner` and kb.stores.provision alone.
    "owner": {**_OWNER, "OPTIONS": {**_DEFAULTS, **_OWNER.get("OPTIONS", {}), **_COMMON}, "DISABLE_SERVER_SIDE_CURSORS": True},
}
DATABASE_ROUTERS = ["config.routers.OneSchema"]

SECRET_KEY = ENV.secret_key or secret_key(home())
if not SECRET_KEY:
    raise ImproperlyConfigured("LECTERN_SECRET_KEY is not set. Set it to a long random string and keep it: it encrypts what is stored.")
DEBUG = ENV.debug
ALLOWED_HOSTS = list(ENV.allowed_hosts)
CSRF_TRUSTED_ORIGINS = list(ENV.csrf_trusted_origins)
SITE_URL = ENV.public_url
HOME = home()

INSTALLED_APPS = [
    "unfold",
    "django.contrib.admin.apps.SimpleAdminConfig",  # the pages are found by config.urls: a worker needs none
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django_celery_beat",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "config.apps.LecternConfig",
    "kb",
    "ingestion",
    "retrieval",
    "workflows",
]
MIDDLEWARE = [
    "kb.serving.Serving",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
APPEND_SLASH = False
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
AUTH_USER_MODEL = "kb.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator", "NumericPasswordValidator")
]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
STATIC_URL = "static/"
WHITENOISE_USE_FINDERS = True
DATA_UPLOAD_MAX_MEMORY_SIZE = ENV.max_upload_bytes
FILE_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
MAX_UPLOAD_BYTES = ENV.max_upload_bytes
FORM_ROOM_BYTES = 1024 * 1024  # what a form needs around its file
# CSP and nosniff for everything; downloads tighten it further.
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SITE_URL.startswith("https://")

_FILE_STORAGE = {
    "BACKEND": "django.core.files.storage.FileSystemStorage",
    "OPTIONS": {"location": str(HOME / "blobs"), "base_url": None, "file_permissions_mode": 0o600, "directory_permissions_mode": 0o700},
}
if ENV.storage == "s3":
    if find_spec("boto3") is None:
        install = "pip install --require-hashes -r requirements/s3.txt"
        raise ImproperlyConfigured(f"LECTERN_STORAGE is s3, which needs the package boto3. Install it beside Lectern: {install}")
    from config.object_store import s3_storage

STORAGES = {
    "default": s3_storage(ENV) if ENV.storage == "s3" else _FILE_STORAGE,
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["kb.api.authentication.BearerKey", "kb.api.authentication.Session"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "config.openapi.Schema",
    "EXCEPTION_HANDLER": "config.problems.handle",
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS = {
    "ENUM_NAME_OVERRIDES": {"JobStatus": ["queued", "running", "succeeded", "failed", "cancelled"]},
    "TITLE": "Lectern",
    "DESCRIPTION": "A self-hosted knowledge-base server for LLM applications.",
    "VERSION": VERSION,
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "COMPONENT_SPLIT_REQUEST": True,
    "SERVE_AUTHENTICATION": [],
    "SERVE_PERMISSIONS": [],
}
UNFOLD = {
    "SITE_TITLE": "Lectern",
    "SITE_HEADER": "Lectern",
    "SHOW_HISTORY": False,
    "SHOW_VIEW_ON_SITE": False,
    "SIDEBAR": {"show_search": True, "show_all_applications": False, "navigation": "kb.admin.navigation.groups_for"},
}

# --- registries: name -> dotted path, the same way for every kind of extension ------------------------------------------
EMBEDDING_PROVIDERS = {
    "local": "kb.providers.local:LocalProvider",
    "openai": "kb.providers.openai:OpenAIProvider",
    "azure-openai": "kb.providers.azure:AzureProvider",
    "ollama": "kb.providers.ollama:OllamaProvider",
    "mistral": "kb.providers.mistral:MistralProvider",
    "bedrock": "kb.providers.bedrock:BedrockProvider",
    "cohere": "kb.providers.cohere:CohereProvider",
    "gemini": "kb.providers.gemini:GeminiProvider",
    "vertex": "kb.providers.vertex:VertexProvider",
    "voyage": "kb.providers.voyage:VoyageProvider",
    "hashing": "kb.providers.hashing:HashingProvider",
}
RERANKERS = {
    "cross-encoder": "kb.rerankers.cross_encoder:CrossEncoderReranker",
    "cohere": "kb.rerankers.http:CohereReranker",
    "voyage": "kb.rerankers.http:VoyageReranker",
    "jina": "kb.rerankers.http:JinaReranker",
}
VECTOR_STORES = {
    "pgvector": "kb.stores.pgvector:KIND",
    "qdrant": "kb.stores.qdrant:KIND",
    "chroma": "kb.stores.chroma:KIND",
    "elasticsearch": "kb.stores.elasticsearch:KIND",
    "mongodb-atlas": "kb.stores.mongodb:KIND",
    "memory": "kb.stores.memory:KIND",
}
SOURCE_LISTERS = {"upload": "ingestion.sources.upload:list_files", "channel": "ingestion.sources.channel:list_files"}
# How a run comes to know what there is, by the kind of its source; the other stages are the same for all.
CRAWLS = {
    "upload": "ingestion.stages.listing:work",
    "channel": "ingestion.stages.listing:work",
    "web": "ingestion.sources.web.crawl:work",
}
# How a preview looks at a source, by its kind.
PREVIEWS = {"upload": "ingestion.sources.listed:ListedLook", "web": "ingestion.sources.web.preview:SiteLook"}
STAGES = {
    "extract": "ingestion.stages.extract:work",
    "recognize": "ingestion.stages.recognize:work",
    "embed": "ingestion.stages.embed:work",
    "publish": "ingestion.stages.publish:work",
    "finish": "ingestion.stages.finish:work",
    "recheck": "ingestion.sources.web.recheck:work",  # what a confirmed deletion does in place of a crawl
}
# Sentences that the page of a knowledge base in the admin warns with, each from a function of it.
NOTICES = {"recall": "retrieval.recall.running:notices_of"}
# What works a slice of a job, by its kind.
RETRIEVAL_JOBS = {"evaluation": "retrieval.evaluation.running:work", "recall": "retrieval.recall.running:work"}
# How documents of a knowledge base are counted that were made under other settings than those of now.
OUTDATED = {"cut": "ingestion.services.outdated:count"}
# What is cleared away every minute, in this order.
HOUSEKEEPING = {
    "removed sources": "ingestion.housekeeping:clear_removed_sources",
    "deleted knowledge bases": "ingestion.housekeeping:clear_deleted",
    "points in external stores": "kb.store_removals:drain_all",
    "word statistics": "ingestion.housekeeping:fold_words",
    "left vectors": "kb.leaving:remove_left_vectors",
    "unused partitions": "kb.leaving:drop_unused_partitions",
    "vector indexes": "ingestion.housekeeping:build_vector_indexes",
    "texts": "ingestion.housekeeping:collect_texts",
    "verdicts": "ingestion.housekeeping:collect_verdicts",
    "traces": "retrieval.traces:collect_traces",
    "jobs of retrieval": "retrieval.jobs:wake_waiting",
    "datasets": "ingestion.parts:collect_datasets",
    "uploads": "kb.uploads:collect",
    "descriptions of datasets": "ingestion.services.channel_files:describe_datasets",
    "files": "kb.blobs:collect",
}

# --- the fleet ----------------------------------------------------------------------------------------------------------
CELERY = queues.celery_settings(REDIS_URL)
CELERY_BEAT_SCHEDULER = "django_celery_beat.schedulers:DatabaseScheduler"
DJANGO_CELERY_BEAT_TZ_AWARE = True

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"handlers": ["console"], "level": ENV.log_level},
    "loggers": {
        "httpx": {"level": "WARNING"},
        "httpx2": {"level": "WARNING"},  # an endpoint may carry a key
        "pdfminer": {"level": "ERROR"},
        "fontTools": {"level": "WARNING"},
    },
}
