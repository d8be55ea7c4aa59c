"""Routes of what goes in: texts, documents, files, sources and their runs. Ids are strings here, so that what is no id is a 404 too."""

from django.urls import path

from ingestion.api.channel_files import (
    ChannelFileContentView,
    ChannelFilePolicyView,
    ChannelFileRetryView,
    ChannelFilesView,
    ChannelFileVersionsView,
    ChannelFileView,
)
from ingestion.api.datasets import DatasetQueryView, DatasetsView, DatasetView
from ingestion.api.documents import DocumentsView, DocumentView
from ingestion.api.embeddings import CancelChangeView, EmbeddingsView, ReembedView, RollBackModelView
from ingestion.api.events import RunEventsView
from ingestion.api.explanations import WhyView
from ingestion.api.files import FileContentView, FilesView, FileView
from ingestion.api.ingestions import IngestionView, IngestView
from ingestion.api.previews import PreviewSourceView
from ingestion.api.runs import (
    CancelRunView,
    ConfirmRunView,
    PlannedRemovalsView,
    ReextractView,
    RejectRunView,
    RunSourceView,
    RunView,
    SourceRunsView,
)
from ingestion.api.sources import SourceDocumentsView, SourceFiresView, SourcesView, SourceView
from ingestion.api.uploads import (
    ChannelUploadsView,
    ChannelUploadUrlView,
    SourceUploadsView,
    SourceUploadUrlView,
    UploadCompleteView,
    UploadContentView,
    UploadView,
)
from ingestion.api.verdicts import RunDocumentsView

KB = "knowledge-bases/<str:kb_id>"
SOURCE = f"{KB}/sources/<str:source_id>"

urlpatterns = [
    path(f"{KB}/ingest", IngestView.as_view(), name="ingest"),
    path(f"{KB}/ingestions/<str:ingestion_id>", IngestionView.as_view(), name="ingestion"),
    path(f"{KB}/embeddings", EmbeddingsView.as_view(), name="embeddings"),
    path(f"{KB}/embeddings/cancel", CancelChangeView.as_view(), name="embeddings-cancel"),
    path(f"{KB}/embeddings/rollback", RollBackModelView.as_view(), name="embeddings-rollback"),
    path(f"{KB}/reembed", ReembedView.as_view(), name="reembed"),
    path(f"{KB}/documents", DocumentsView.as_view(), name="documents"),
    path(f"{KB}/documents/<str:document_id>", DocumentView.as_view(), name="knowledge-base-document"),
    path("documents/<str:document_id>", DocumentView.as_view(), name="document"),
    path(f"{KB}/sources", SourcesView.as_view(), name="sources"),
    path(SOURCE, SourceView.as_view(), name="source"),
    path(f"{SOURCE}/fires", SourceFiresView.as_view(), name="source-fires"),
    path(f"{SOURCE}/run", RunSourceView.as_view(), name="source-run"),
    path(f"{SOURCE}/reextract", ReextractView.as_view(), name="source-reextract"),
    path(f"{SOURCE}/preview", PreviewSourceView.as_view(), name="source-preview"),
    path(f"{SOURCE}/why", WhyView.as_view(), name="source-why"),
    path(f"{SOURCE}/runs", SourceRunsView.as_view(), name="source-runs"),
    path(f"{SOURCE}/documents", SourceDocumentsView.as_view(), name="source-documents"),
    path(f"{SOURCE}/files", FilesView.as_view(), name="source-files"),
    path(f"{SOURCE}/files/upload-url", SourceUploadUrlView.as_view(), name="source-upload-url"),
    path(f"{SOURCE}/files/uploads", SourceUploadsView.as_view(), name="source-uploads"),
    path(f"{SOURCE}/files/<str:file_id>", FileView.as_view(), name="source-file"),
    path(f"{SOURCE}/files/<str:file_id>/content", FileContentView.as_view(), name="source-file-content"),
    path("datasets", DatasetsView.as_view(), name="datasets"),
    path("datasets/<str:dataset_id>", DatasetView.as_view(), name="dataset"),
    path("datasets/<str:dataset_id>/query", DatasetQueryView.as_view(), name="dataset-query"),
    path("files/upload-url", ChannelUploadUrlView.as_view(), name="file-upload-url"),
    path("files/uploads", ChannelUploadsView.as_view(), name="file-uploads"),
    path("files/uploads/<str:upload_id>", UploadView.as_view(), name="upload"),
    path("files/uploads/<str:upload_id>/content", UploadContentView.as_view(), name="upload-content"),
    path("files/uploads/<str:upload_id>/complete", UploadCompleteView.as_view(), name="upload-complete"),
    path("files", ChannelFilesView.as_view(), name="files"),
    path("files/<str:file_id>", ChannelFileView.as_view(), name="file"),
    path("files/<str:file_id>/content", ChannelFileContentView.as_view(), name="file-content"),
    path("files/<str:file_id>/versions", ChannelFileVersionsView.as_view(), name="file-versions"),
    path("files/<str:file_id>/retry", ChannelFileRetryView.as_view(), name="file-retry"),
    path("files/<str:file_id>/policy", ChannelFilePolicyView.as_view(), name="file-policy"),
    path("runs/<str:run_id>", RunView.as_view(), name="run"),
    path("runs/<str:run_id>/cancel", CancelRunView.as_view(), name="run-cancel"),
    path("runs/<str:run_id>/planned-removals", PlannedRemovalsView.as_view(), name="run-planned-removals"),
    path("runs/<str:run_id>/confirm", ConfirmRunView.as_view(), name="run-confirm"),
    path("runs/<str:run_id>/reject", RejectRunView.as_view(), name="run-reject"),
    path("runs/<str:run_id>/documents", RunDocumentsView.as_view(), name="run-documents"),
    path("runs/<str:run_id>/events", RunEventsView.as_view(), name="run-events"),
]
