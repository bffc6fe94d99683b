SELECT m.srcIP, m.destIP, m.ts
FROM read_parquet('${in}/main1/*.parquet') m, (SELECT srcIP, srcPort, destIP, destPort, ts FROM read_csv('${in}/main2/*.csv') UNION ALL SELECT srcIP, srcPort, destIP, destPort, ts FROM (SELECT * REPLACE (CAST(ts AS TIMESTAMPTZ) AS ts) FROM read_json('${in}/control/*.jsonl'))) n
WHERE m.ts = n.ts AND m.srcIP = n.destIP AND m.destIP = n.srcIP AND m.srcPort = n.destPort AND m.destPort = n.srcPort
