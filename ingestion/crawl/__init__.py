"""The rules of a crawl, without network and without rows: addresses, scope, links, robots.txt, sitemaps, traps."""
