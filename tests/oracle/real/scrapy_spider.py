"""A spider over a page on disk: requests and items come out of generators, below an event loop."""
# needs: scrapy

import logging
import sys
import tempfile
import time

from _loop import real_work

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
        if time.perf_counter() < end:
            yield scrapy.Request(response.url, dont_filter=True)


def crawl():
    process = CrawlerProcess({"LOG_ENABLED": False, "TELNETCONSOLE_ENABLED": False})
    process.crawl(Spider)
    process.start()


logging.disable(logging.CRITICAL)
with tempfile.NamedTemporaryFile("w", suffix=".html") as file:
    file.write(f"<html><body>{ROWS}</body></html>")
    file.flush()
    page = f"file://{file.name}"
    end = time.perf_counter() + float(sys.argv[1])
    sys.argv[1] = "0.001"  # one crawl lasts as long as it should
    real_work(crawl)
