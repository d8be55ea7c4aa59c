"""Long random rounds against a real fleet, each compared with what must hold; run by `tests/benchmarks/soak.py`."""
