"""The parts of tests/benchmarks/crawl.py."""
