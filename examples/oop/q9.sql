-- Packets of three links in the last five minutes, told every minute.
-- Query Q9 of Li et al., Out-of-Order Processing (PVLDB 2008), section 8.2, experiment N3, as printed.
-- millstream run examples/oop/q9.sql --set in=examples/oop/data --set out=/tmp/q9

CREATE STREAM M1 (srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED WITH (connector = 'file', format = 'parquet', path = '${in}/main1');
CREATE STREAM M2 (srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts SLACK 5 SECONDS WITH (connector = 'file', format = 'csv', path = '${in}/main2');
CREATE STREAM C (srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED WITH (connector = 'file', format = 'jsonl', path = '${in}/control');

CREATE SINK Out WITH (connector = 'file', format = 'jsonl', path = '${out}');

INSERT INTO Out
SELECT count(*) [RANGE 5 min, SLIDE 1 min, WA ts]
FROM M1 UNION M2 UNION C;
