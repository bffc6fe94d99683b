SELECT m.*, n.srcIP AS srcIP_1, n.srcPort AS srcPort_1, n.destIP AS destIP_1, n.destPort AS destPort_1, n.len AS len_1, n.ts AS ts_1
FROM read_parquet('${in}/main1/*.parquet') m, read_csv('${in}/main2/*.csv') n
WHERE m.srcIP = n.destIP AND n.ts BETWEEN m.ts - INTERVAL 2 MINUTES AND m.ts + INTERVAL 3 MINUTES
