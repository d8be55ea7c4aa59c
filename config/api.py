"""The REST API under /api/v1, gathered from the apps."""

from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView

urlpatterns = [
    path("schema", SpectacularAPIView.as_view(), name="schema"),
    path("docs", SpectacularSwaggerView.as_view(url_name="schema"), name="docs"),
    path("", include("kb.api.urls")),
    path("", include("ingestion.api.urls")),
    path("", include("retrieval.api.urls")),
]
