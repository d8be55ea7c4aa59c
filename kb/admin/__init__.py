"""The admin of every table of `kb`, one module a topic. What changes rows goes through the services, what shows them through `access`."""

from django.contrib import admin
from django.contrib.auth.models import Group

from kb.admin import channels, contents, datasets, embedding_models, knowledge_bases, rerankers, tenants, usage, versions

__all__ = ["channels", "contents", "datasets", "embedding_models", "knowledge_bases", "rerankers", "tenants", "usage", "versions"]

admin.site.unregister(Group)  # rights come from memberships and grants; a group would look as if it gave some
