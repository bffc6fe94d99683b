SELECT count(*) AS "count(*)", date_trunc('minute', m.ts) AS window_start, date_trunc('minute', m.ts) + INTERVAL 1 MINUTE AS window_end
FROM read_parquet('${in}/main1/*.parquet') m, read_csv('${in}/main2/*.csv') n
WHERE m.ts BETWEEN n.ts - INTERVAL 10 SECONDS AND n.ts + INTERVAL 10 SECONDS
  AND m.srcIP = n.destIP AND m.destIP = n.srcIP AND m.srcPort = n.destPort AND m.destPort = n.srcPort
GROUP BY ALL
