"""The product's version; pyproject.toml carries the same number and a test compares them."""

VERSION = "0.1.0"
