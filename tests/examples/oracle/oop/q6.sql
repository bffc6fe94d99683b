SELECT m.srcIP, m.destIP, m.ts
FROM (SELECT srcIP, srcPort, destIP, destPort, ts FROM read_csv('${in}/a/*.csv') UNION ALL SELECT srcIP, srcPort, destIP, destPort, ts FROM read_csv('${in}/b/*.csv')) m,
     (SELECT srcIP, srcPort, destIP, destPort, ts FROM read_csv('${in}/c/*.csv') UNION ALL SELECT srcIP, srcPort, destIP, destPort, ts FROM read_csv('${in}/d/*.csv')) n
WHERE epoch(m.ts)::BIGINT // 10 = epoch(n.ts)::BIGINT // 10
  AND m.srcIP = n.destIP AND m.destIP = n.srcIP AND m.srcPort = n.destPort AND m.destPort = n.srcPort
