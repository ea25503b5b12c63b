"""A parser and a generator of SQL, in Python: recursive descent, many short methods."""
# needs: sqlglot

from _loop import repeat

import sqlglot

QUERY = """
WITH t AS (SELECT a, SUM(b) AS s FROM x JOIN y ON x.id = y.id WHERE c > 3 AND d IN (1, 2, 3) GROUP BY a)
SELECT t.a, CASE WHEN t.s > 10 THEN 'much' ELSE 'little' END AS size, COALESCE(z.n, 0) * 2 + 1
FROM t LEFT JOIN z ON t.a = z.a WHERE EXISTS (SELECT 1 FROM w WHERE w.a = t.a) ORDER BY 1 DESC LIMIT 10
"""

repeat(lambda: sqlglot.parse_one(QUERY).sql(dialect="spark"))
