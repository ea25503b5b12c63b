"""A query translated from one dialect of SQL to another by sqlglot: a tokenizer, a parser, a generator."""

import sqlglot

QUERY = """
SELECT a.id, b.name, COUNT(*) AS n, SUM(CASE WHEN a.kind = 'x' THEN 1 ELSE 0 END) AS xs
FROM accounts AS a LEFT JOIN branches AS b ON a.branch = b.id
WHERE a.opened >= DATE '2020-01-01' AND (a.balance > 100 OR b.city IN ('Oslo', 'Lima', 'Kyiv'))
GROUP BY a.id, b.name HAVING COUNT(*) > 3 ORDER BY n DESC LIMIT 10
"""


def work(loops):
    for _ in range(loops):
        sqlglot.transpile(QUERY, read="duckdb", write="spark")
