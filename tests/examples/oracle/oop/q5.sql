SELECT srcIP, destIP, count(*) AS "count(*)", date_trunc('minute', ts) AS window_start, date_trunc('minute', ts) + INTERVAL 1 MINUTE AS window_end
FROM (SELECT srcIP, srcPort, destIP, destPort, ts FROM read_parquet('${in}/main1/*.parquet') UNION ALL SELECT srcIP, srcPort, destIP, destPort, ts FROM read_csv('${in}/main2/*.csv'))
GROUP BY ALL
