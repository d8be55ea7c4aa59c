import pytest

from config.addresses import parse_networks
from ingestion.crawl.fetch import Fetcher, FetchFailed
from tests.servers.certificate import make_certificate

LOOPBACK = parse_networks("127.0.0.1/32:*")


@pytest.fixture
def fetcher_of():
    made = []

    def make(**arguments):
        arguments = {"user_agent": "Lectern/1 (+https://kb.test)", "timeout_seconds": 0.5, "allowed": LOOPBACK} | arguments
        made.append(Fetcher(**arguments))
        return made[-1]

    yield make
    for fetcher in made:
        fetcher.close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def failure():
    def fail(fetcher, url, **arguments):
        with pytest.raises(FetchFailed) as caught:
            fetcher.get(url, **({"max_bytes": 100_000} | arguments))
        return caught.value

    return fail
