SELECT count(*) AS "count(*)", date_trunc('minute', ts) AS window_start, date_trunc('minute', ts) + INTERVAL 1 MINUTE AS window_end
FROM (SELECT ts FROM (SELECT * REPLACE (CAST(ts AS TIMESTAMPTZ) AS ts) FROM read_json('${in}/control/*.jsonl')) UNION ALL SELECT ts FROM read_parquet('${in}/main1/*.parquet') UNION ALL SELECT ts FROM read_csv('${in}/main2/*.csv'))
GROUP BY ALL
