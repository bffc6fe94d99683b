-- A tuple is late when it is older than the newest before it (of those that can be read), less the slack.
-- sink: minutes
SELECT sensor, count(*) AS n, min(celsius) AS coldest, date_trunc('minute', ts) AS window_start, date_trunc('minute', ts) + INTERVAL 1 MINUTE AS window_end
FROM (SELECT sensor, TRY_CAST(celsius AS DOUBLE) AS celsius, ts, lag(late) OVER (ORDER BY number) AS before
      FROM (SELECT *, max(ts) OVER (ORDER BY number) - INTERVAL 10 SECONDS AS late
            FROM (SELECT *, row_number() OVER () AS number FROM read_csv('${in}/troubled.csv'))
            WHERE TRY_CAST(celsius AS DOUBLE) IS NOT NULL AND ts IS NOT NULL))
WHERE before IS NULL OR ts >= before
GROUP BY ALL
-- letters
SELECT 'late' AS kind, count(*) AS n FROM (SELECT sensor, TRY_CAST(celsius AS DOUBLE) AS celsius, ts, lag(late) OVER (ORDER BY number) AS before
      FROM (SELECT *, max(ts) OVER (ORDER BY number) - INTERVAL 10 SECONDS AS late
            FROM (SELECT *, row_number() OVER () AS number FROM read_csv('${in}/troubled.csv'))
            WHERE TRY_CAST(celsius AS DOUBLE) IS NOT NULL AND ts IS NOT NULL)) WHERE ts < before
UNION ALL SELECT 'broken', count(*) FROM read_csv('${in}/troubled.csv') WHERE TRY_CAST(celsius AS DOUBLE) IS NULL
UNION ALL SELECT 'null-timestamp', count(*) FROM read_csv('${in}/troubled.csv') WHERE ts IS NULL AND TRY_CAST(celsius AS DOUBLE) IS NOT NULL
