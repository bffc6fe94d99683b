-- Packets of one link for each pair of addresses and minute.
-- Query Q4 of Li et al., Out-of-Order Processing (PVLDB 2008), section 8.1, experiment G1, as printed.
-- millstream run examples/oop/q4.sql --set in=examples/oop/data --set out=/tmp/q4

CREATE STREAM M (srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED WITH (connector = 'file', format = 'parquet', path = '${in}/main1');

CREATE SINK Out WITH (connector = 'file', format = 'csv', path = '${out}');

INSERT INTO Out
SELECT srcIP, destIP, count(*)
FROM M [WA ts, RANGE 1 min, SLIDE 1 min]
GROUP BY srcIP, destIP;
