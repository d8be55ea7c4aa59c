"""Every URL of the product."""

from django.contrib import admin
from django.urls import include, path

from config.problems import handler400, handler403, handler404, handler500

__all__ = ["handler400", "handler403", "handler404", "handler500"]

urlpatterns = [
    path("", include("ingestion.api.health")),
    path("admin/", admin.site.urls),
    path("api/v1/", include("config.api")),
]
