"""Columns of several files: added and widened, or refused by name."""

import pytest

from ingestion.datasets.columns import Column, SchemaDrift, merge_columns, widen
from ingestion.datasets.names import column_names, dataset_name


@pytest.mark.parametrize(
    ("one", "other", "wide"),
    [
        ("BIGINT", "BIGINT", "BIGINT"),
        ("INTEGER", "BIGINT", "BIGINT"),
        ("UINTEGER", "INTEGER", "BIGINT"),
        ("UBIGINT", "BIGINT", "HUGEINT"),
        ("BIGINT", "DOUBLE", "DOUBLE"),
        ("FLOAT", "DOUBLE", "DOUBLE"),
        ("BIGINT", "DECIMAL(18,2)", "DECIMAL(21,2)"),
        ("DECIMAL(18,2)", "DECIMAL(18,4)", "DECIMAL(20,4)"),
        ("DECIMAL(38,2)", "DECIMAL(38,20)", "DOUBLE"),
        ("DECIMAL(18,2)", "DOUBLE", "DOUBLE"),
        ("DATE", "TIMESTAMP", "TIMESTAMP"),
        ("TIMESTAMP_NS", "TIMESTAMP", "TIMESTAMP"),
        ("BIGINT", "VARCHAR", None),
        ("DATE", "VARCHAR", None),
        ("BOOLEAN", "BIGINT", None),
        ("TIMESTAMP", "TIMESTAMP WITH TIME ZONE", None),
        ("DATE", "BIGINT", None),
    ],
)
def test_types_widen_where_nothing_is_lost(one, other, wide):
    assert widen(one, other) == widen(other, one) == wide


def test_columns_are_added_filled_and_widened_without_regard_to_case():
    known = [Column("Day", "DATE"), Column("amount", "BIGINT"), Column("note", "VARCHAR", is_empty=True)]
    new = [Column("AMOUNT", "DOUBLE"), Column("note", "BIGINT"), Column("shop", "VARCHAR")]
    assert merge_columns(known, new) == [
        Column("Day", "DATE"),
        Column("amount", "DOUBLE"),
        Column("note", "BIGINT"),
        Column("shop", "VARCHAR"),
    ]
    assert merge_columns([], new) == new


def test_what_does_not_fit_is_refused_by_name():
    with pytest.raises(SchemaDrift, match="its column “amount” is text, in the dataset it is a whole number"):
        merge_columns([Column("day", "DATE"), Column("Amount", "BIGINT")], [Column("amount", "VARCHAR")])
    with pytest.raises(SchemaDrift, match=r"none of its columns \(x\) is one of the dataset \(a, b\)"):
        merge_columns([Column("a", "DATE"), Column("b", "DATE")], [Column("x", "DATE")])


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Sales 2024 (März)", "sales_2024_marz"),
        ("2024", "t_2024"),
        ("売上 表", "売上_表"),
        ("…", "dataset"),
        ("a" * 100, "a" * 63),
        ("Straße", "strasse"),
    ],
)
def test_names_that_sql_takes(text, name):
    assert dataset_name(text) == name


def test_names_of_columns_are_told_apart():
    assert column_names(["a b\n c", "A B C", "a_2", "A"], 5) == ["a b c", "A B C_2", "a_2", "A", "column_5"]
