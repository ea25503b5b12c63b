"""A spider over a page on disk: requests and items come out of generators, below an event loop."""
# needs: scrapy

import gc
import logging
import tempfile
import time

from _loop import once

import scrapy
from scrapy.crawler import CrawlerProcess

ROWS = "".join(f"<div class='q'><span class='t'>text {i}</span><a href='/a/{i}'>author</a></div>"
               for i in range(60))


def words(text):
    for word in text.split():
        yield word.lower()


class Spider(scrapy.Spider):
    name = "spider"

    async def start(self):
        for request in self.start_requests():
            yield request

    def start_requests(self):
        for number in range(4):
            yield scrapy.Request(f"{page}?{number}", dont_filter=True)

    def parse(self, response):
        for row in response.css("div.q"):
            yield {"text": row.css("span.t::text").get(), "link": row.css("a::attr(href)").get(),
                   "words": list(words("Some Words of This Row"))}
        gc.collect(0)
        if time.perf_counter() < end:
            yield scrapy.Request(response.url, dont_filter=True)


def crawl(seconds):
    global end
    end = time.perf_counter() + seconds
    process.start()


logging.disable(logging.CRITICAL)
process = CrawlerProcess({"LOG_ENABLED": False, "TELNETCONSOLE_ENABLED": False, "DOWNLOAD_HANDLERS": {
    scheme: None for scheme in ("http", "https", "ftp", "s3")}})
with tempfile.NamedTemporaryFile("w", suffix=".html") as file:
    file.write(f"<html><body>{ROWS}</body></html>")
    file.flush()
    page = f"file://{file.name}"
    process.crawl(Spider)
    once(crawl)
