"""A page that names another as its canonical, where that one leads on."""

import pytest

from tests.ingestion.web.conftest import living, put, run_source, url_of, verdicts
from tests.servers.site import redirect

pytestmark = pytest.mark.django_db


def test_a_canonical_that_redirects_does_not_double_the_document(web, site, client):
    put(site, "/", "/copy", "/page")
    put(site, "/page")
    put(site, "/copy", canonical="/named")
    site.put("/named", redirect("/page", 302))
    source = web()
    assert client.post(f"{url_of(source)}/preview").json()["counts"]["new"] == 2
    run = run_source(source)
    assert living(source, site) == {"/", "/page"}
    assert verdicts(run, site)["/copy"] == "skipped duplicate_of"


def test_a_canonical_that_redirects_back_leaves_the_page_to_stand_for_itself(web, site, client):
    put(site, "/", "/page")
    put(site, "/page", canonical="/named")
    site.put("/named", redirect("/page", 301))
    source = web()
    assert client.post(f"{url_of(source)}/preview").json()["counts"]["new"] == 2
    run_source(source)
    assert living(source, site) == {"/", "/page"}
