SELECT count(*) AS "count(*)", window_start, window_start + INTERVAL 5 MINUTES AS window_end
FROM (SELECT unnest(starts(ts, 300, 60)) AS window_start
      FROM (SELECT ts FROM read_parquet('${in}/main1/*.parquet') UNION ALL SELECT ts FROM read_csv('${in}/main2/*.csv') UNION ALL SELECT ts FROM (SELECT * REPLACE (CAST(ts AS TIMESTAMPTZ) AS ts) FROM read_json('${in}/control/*.jsonl'))))
GROUP BY window_start
