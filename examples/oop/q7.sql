-- Packets answered within ten seconds, before or after, counted by the minute of the first link's packet.
-- Query Q7 of Li et al., Out-of-Order Processing (PVLDB 2008), section 8.2, experiment N1.
-- Changed: the paper varies the band n; here it is 10 seconds, and an interval because ts is a TIMESTAMP.
-- millstream run examples/oop/q7.sql --set in=examples/oop/data --set out=/tmp/q7

CREATE STREAM M1 (srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED WITH (connector = 'file', format = 'parquet', path = '${in}/main1');
CREATE STREAM M2 (srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts SLACK 5 SECONDS WITH (connector = 'file', format = 'csv', path = '${in}/main2');

CREATE SINK Out WITH (connector = 'file', format = 'jsonl', path = '${out}');

INSERT INTO Out
SELECT count(*)
[RANGE 1 min, SLIDE 1 min, WA M1.ts]
FROM M1, M2
WHERE M1.ts >= M2.ts - INTERVAL 10 SECONDS and M1.ts <= M2.ts + INTERVAL 10 SECONDS and
M1.srcIP = M2.destIP and M1.destIP = M2.srcIP and
M1.srcPort = M2.destPort and M1.destPort = M2.srcPort;
