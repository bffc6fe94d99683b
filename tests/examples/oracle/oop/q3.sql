SELECT m.ts, n.ts AS ts_1, count(*) AS "count(*)"
FROM read_csv('${in}/s0/*.csv') m, read_csv('${in}/s1/*.csv') n
WHERE m.destIP = n.srcIP AND m.destPort = n.srcPort AND m.flag = 'SYN' AND n.flag = 'SYN_ACK'
  AND m.ts < n.ts AND n.ts <= m.ts + INTERVAL 2 MINUTES
GROUP BY m.ts, n.ts
