SELECT srcIP, destIP, count(*) AS "count(*)", date_trunc('minute', ts) AS window_start, date_trunc('minute', ts) + INTERVAL 1 MINUTE AS window_end
FROM read_parquet('${in}/main1/*.parquet')
GROUP BY ALL
