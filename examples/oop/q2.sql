-- Packets of two links whose addresses meet: within 3 minutes when Main1's packet was first, within 2 when Main2's was.
-- Query Q2 of Li et al., Out-of-Order Processing (PVLDB 2008), section 4.2, as printed (both ends of the range included).
-- millstream run examples/oop/q2.sql --set in=examples/oop/data --set out=/tmp/q2

CREATE STREAM Main1 (srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED WITH (connector = 'file', format = 'parquet', path = '${in}/main1');
CREATE STREAM Main2 (srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts SLACK 5 SECONDS WITH (connector = 'file', format = 'csv', path = '${in}/main2');

CREATE SINK Out WITH (connector = 'file', format = 'parquet', path = '${out}');

INSERT INTO Out
SELECT *
FROM Main1 [WA ts, RANGE 3 min],
     Main2 [WA ts, RANGE 2 min]
WHERE Main1.srcIP = Main2.destIP;
