from django.urls import path

from retrieval.api.views import CompareView, SearchView, TracesView, TraceView

urlpatterns = [
    path("search", SearchView.as_view(), name="search"),
    path("search/compare", CompareView.as_view(), name="search-compare"),
    path("traces", TracesView.as_view(), name="traces"),
    path("traces/<str:trace_id>", TraceView.as_view(), name="trace"),
]
