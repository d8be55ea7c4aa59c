"""Datasets: what tables became, and SQL over them."""

from datetime import datetime
from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from pydantic import BaseModel, Field
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from config.body import parse_body
from config.openapi import PAGE_PARAMETERS, Paged, query
from config.paging import NEWEST_FIRST, limit_of, take_page
from ingestion.api.parameters import text_of
from ingestion.services import datasets
from ingestion.services.datasets import MAX_DATASETS, Asked, Seen
from kb import access

MAX_SQL = 20_000
MAX_ROWS = 10_000
DEFAULT_ROWS = 1_000


class DatasetColumn(BaseModel):
    """`type` is DuckDB's. An `empty` column has no value in any row."""

    name: str
    type: str
    empty: bool


class DatasetSummary(BaseModel):
    """A table that is queried with SQL under `name`; its columns and rows are those of all its files that you may read."""

    id: UUID
    name: str
    knowledge_base_id: UUID
    source_id: UUID
    columns: list[DatasetColumn]
    rows: int
    files: int
    size: int = Field(description="Bytes of its Parquet files.")
    created_at: datetime
    updated_at: datetime


class DatasetFile(BaseModel):
    """A document whose table is part of the dataset; deleting that takes its rows out."""

    document_id: UUID
    name: str
    sheet: str
    rows: int
    size: int
    partition: dict[str, str | None] = Field(description="The values that its partition columns have in all rows.")


class DatasetDetail(DatasetSummary):
    parts: list[DatasetFile]


class QueriedDataset(BaseModel):
    id: UUID
    name: str | None = Field(default=None, min_length=1, max_length=63, pattern=r"^\w+$", description="What SQL calls it, if not its name.")


class DatasetQuery(BaseModel):
    """One SELECT. The dataset of the address is called by its name and `dataset`."""

    sql: str = Field(min_length=1, max_length=MAX_SQL, description="DuckDB's SQL; `WITH … SELECT` is one SELECT too.")
    datasets: list[QueriedDataset] = Field(default_factory=list, max_length=MAX_DATASETS - 1, description="More datasets to join.")
    max_rows: int = Field(default=DEFAULT_ROWS, ge=1, le=MAX_ROWS, description="Most rows of the answer.")


class ResultColumn(BaseModel):
    name: str
    type: str


class QuerySource(BaseModel):
    dataset: UUID
    name: str = Field(description="What SQL called it.")
    format: str = "parquet"
    row_count: int
    updated_at: datetime


class DatasetRows(BaseModel):
    """`rows` are lists of values in the order of `columns`. Numbers that a double does not hold exactly are texts, dates and times are
    ISO 8601, bytes base64."""

    columns: list[ResultColumn]
    rows: list[list[Any]]
    row_count: int = Field(description="Of this answer.")
    truncated: bool = Field(description="There were more rows than `max_rows`, or than fit into 4 MiB.")
    seconds: float
    sources: list[QuerySource]


class DatasetsView(APIView):
    @extend_schema(
        operation_id="list_datasets",
        responses={200: Paged[DatasetSummary]},
        parameters=[
            query("knowledge_base_id", "Only datasets of this knowledge base."),
            query("source_id", "Only datasets of this source."),
            query("document_id", "Only datasets that this document is part of."),
            query("q", "Words that stand in the name."),
            *PAGE_PARAMETERS,
        ],
        tags=["datasets"],
    )
    def get(self, request: Request) -> Response:
        found = datasets.visible_datasets(request.user)
        for name in ("knowledge_base_id", "source_id"):
            if value := request.query_params.get(name):
                found = found.filter(**{name: access.parse_id(value)})
        if value := request.query_params.get("document_id"):
            found = found.filter(id__in=datasets.visible_parts(request.user).filter(document=access.parse_id(value)).values("dataset"))
        if words := text_of(request, "q"):
            found = found.filter(name__icontains=words)
        page = take_page(found, cursor=request.query_params.get("cursor"), limit=limit_of(request), ordering=NEWEST_FIRST)
        items = [summary(seen).model_dump(mode="json") for seen in datasets.see_all(request.user, page.items)]
        return Response({"items": items, "next_cursor": page.next_cursor})


class DatasetView(APIView):
    @extend_schema(responses={200: DatasetDetail}, tags=["datasets"])
    def get(self, request: Request, dataset_id: str) -> Response:
        """The dataset with its files."""
        seen = datasets.see_dataset(request.user, dataset_id)
        parts = [
            DatasetFile(
                document_id=part.document_id,
                name=part.document.key.partition("\n")[0],
                sheet=part.sheet,
                rows=part.rows,
                size=part.size,
                partition=part.partition,
            )
            for part in seen.parts
        ]
        return Response(DatasetDetail(**summary(seen).model_dump(), parts=parts).model_dump(mode="json"))


class DatasetQueryView(APIView):
    @extend_schema(operation_id="query_dataset", request=DatasetQuery, responses={200: DatasetRows}, tags=["datasets"])
    def post(self, request: Request, dataset_id: str) -> Response:
        """Run one SELECT; nothing but the named datasets can be read. 400 with a `reason` says what is wrong with the statement."""
        first = datasets.see_dataset(request.user, dataset_id).dataset
        body = parse_body(request, DatasetQuery)
        asked = [Asked(first.id), *(Asked(each.id, each.name or "") for each in body.datasets)]
        answer = datasets.query_datasets(request.user, asked, sql=body.sql, max_rows=body.max_rows)
        rows = DatasetRows(
            columns=[ResultColumn(**column) for column in answer.columns],
            rows=answer.rows,
            row_count=len(answer.rows),
            truncated=answer.truncated,
            seconds=answer.seconds,
            sources=[
                QuerySource(dataset=seen.dataset.id, name=name, row_count=seen.dataset.rows, updated_at=seen.dataset.updated_at)
                for name, seen in answer.sources
            ],
        )
        return Response(rows.model_dump(mode="json"))


def summary(seen: Seen) -> DatasetSummary:
    dataset = seen.dataset
    return DatasetSummary(
        id=dataset.id,
        name=dataset.name,
        knowledge_base_id=dataset.knowledge_base_id,
        source_id=dataset.source_id,
        columns=[DatasetColumn(name=column.name, type=column.type, empty=column.is_empty) for column in seen.columns],
        rows=dataset.rows,
        files=dataset.files,
        size=dataset.size,
        created_at=dataset.created_at,
        updated_at=dataset.updated_at,
    )
