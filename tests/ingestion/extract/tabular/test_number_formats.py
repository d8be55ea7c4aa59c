"""Numbers, dates and times as a person sees them in a workbook."""

import datetime as dt

import pytest

from ingestion.extract.tabular.number_formats import BUILT_IN, number_format

SHOWN = [
    ("General", 1.5, "1.5"),
    ("General", -3, "-3"),
    ("General", 0.1 + 0.2, "0.3"),
    ("General", 1e20, "1E+20"),
    ("General", -2.5e-9, "-2.5E-09"),
    ("General", 4006381333931, "4006381333931"),
    ('General" kg"', -5.5, "-5.5 kg"),
    ("0", 2.5, "3"),
    ("0", -2.5, "-3"),
    ("0.00", 1.005, "1.01"),
    ("0.0", -0.04, "0.0"),
    ("00000", 123, "00123"),
    ("0.###", 1.0, "1"),
    ("#.##", 0.5, ".5"),
    ("#,##0", 1234567, "1,234,567"),
    ("#,##0.00", -1234.5, "-1,234.50"),
    ("#,##0,", 1234567, "1,235"),
    ('0.0,,"M"', 1234567, "1.2M"),
    ("0%", 0.256, "26%"),
    ("0.0%", -0.256, "-25.6%"),
    ("0.00E+00", 12345, "1.23E+04"),
    ("##0.0E+0", 12345, "12.3E+3"),
    ("0.0E+00", 0.00012, "1.2E-04"),
    ("0.0E+00", 9.99, "1.0E+01"),
    ("# ?/?", 1.5, "1 1/2"),
    ("?/?", 1.5, "3/2"),
    ("# ?/8", 0.25, "2/8"),
    ("000-00-0000", 123456789, "123-45-6789"),
    ("#,##0 ;(#,##0)", -5, "(5)"),
    (BUILT_IN[44], 0, "-"),
    (BUILT_IN[44], -1234.5, "(1,234.50)"),
    ("[$€-407] #,##0.00", 5, "€ 5.00"),
    ('#,##0.00\\ "€"', 5, "5.00 €"),
    ("+0;-0;0", 5, "+5"),
    ('[>=1000]#,##0,"K";0', 1500, "2K"),
    ('[>=1000]#,##0,"K";0', 15, "15"),
    ('[Red]0;[Blue]-0;"zero"', 0, "zero"),
    ('"Q"0', 3, "Q3"),
    ("@", 5.0, "5"),
    (";;;", 5, ""),
    ("yyyy-mm-dd", 45292, "2024-01-01"),
    ("m/d/yy", 45355, "2024-03-04"),
    ("dd.mm.yyyy hh:mm", 45292.5, "2024-01-01 12:00"),
    ("dddd, mmmm dd, yyyy", 45292, "2024-01-01"),
    ('yyyy"年"m"月"d"日"', 45292, "2024-01-01"),
    ("yyyy\\-mm\\-dd\\ h:mm:ss", 45292, "2024-01-01 00:00:00"),
    ("dd.mm.yyyy hh:mm:ss.000", 45292.123456, "2024-01-01 02:57:46.598"),
    ("mmm-yy", 45292, "Jan-24"),
    ("d. mmmm", 45355, "4. March"),
    ("yyyy", 45292, "2024"),
    ("h:mm AM/PM", 0.75, "6:00 PM"),
    ("h:mm", 45292.25, "6:00"),
    ("[h]:mm", 1.5, "36:00"),
    ("[h]:mm:ss", -0.5, "-12:00:00"),
    ("mm:ss.0", 123.4 / 86400, "02:03.4"),
    ("[mm]:ss", 1 / 24, "60:00"),
    ("h:mm", 0.999999, "0:00"),
    ("yyyy-mm-dd", -1, "-1"),
    ("yyyy-mm-dd", 1e9, "1000000000"),
    ("yyyy-mm-dd", 60, "1900-02-28"),
    ("yyyy-mm-dd", 1, "1900-01-01"),
]


@pytest.mark.parametrize(("code", "number", "shown"), SHOWN)
def test_shown(code, number, shown):
    assert number_format(code).show(number) == shown


@pytest.mark.parametrize(
    "code", ["", "[", '"', "\\", "[$", "0.", "E+", "E+0", "/", "0/", "#/0", ";;;;;;", "_", "*", "[>=]0", "[h", "?" * 900, "0" * 900 + "E+0"]
)
@pytest.mark.parametrize("number", [0, -1, 1.5, 1e300, -1e-300, float("inf"), float("nan"), 10**15])
def test_any_code_shows_any_number(code, number):
    assert isinstance(number_format(code).show(number), str)


@pytest.mark.parametrize(
    ("code", "serial", "value"),
    [
        ("yyyy-mm-dd", 45292, dt.date(2024, 1, 1)),
        ("yyyy-mm-dd", 45292.5, dt.datetime(2024, 1, 1, 12)),
        ("yyyy-mm-dd hh:mm", 45292, dt.datetime(2024, 1, 1)),
        ("h:mm", 0.75, dt.time(18)),
        ("h:mm", 45292.75, dt.datetime(2024, 1, 1, 18)),
        ("[h]:mm", 1.5, dt.timedelta(hours=36)),
        ("mmm-yy", 45292, dt.date(2024, 1, 1)),
        ("yyyy-mm-dd", -5, -5),
    ],
)
def test_values(code, serial, value):
    assert number_format(code).date.value(serial, from_1904=False) == value


def test_texts_and_numbers_know_their_section():
    assert number_format('0;-0;0;"text: "@').show_text("a") == "text: a"
    assert number_format("0.00").show_text("a") == "a"
    assert number_format("0.00").date is None
    assert number_format('"day" 0').date is None
    assert number_format("[Red]0.00").date is None
