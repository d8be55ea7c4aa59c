"""Every URL of the product."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from config.problems import handler400, handler403, handler404, handler500

__all__ = ["handler400", "handler403", "handler404", "handler500"]

admin.autodiscover()

urlpatterns = [
    path("", include("ingestion.api.health")),
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("admin/", admin.site.urls),
    path("api/v1/", include("config.api")),
]
