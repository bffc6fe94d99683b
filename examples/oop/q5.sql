-- The same count over two links that are not in step.
-- Query Q5 of Li et al., Out-of-Order Processing (PVLDB 2008), section 8.1, experiment G2, as printed.
-- millstream run examples/oop/q5.sql --set in=examples/oop/data --set out=/tmp/q5

CREATE STREAM M1 (srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED WITH (connector = 'file', format = 'parquet', path = '${in}/main1');
CREATE STREAM M2 (srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts SLACK 5 SECONDS WITH (connector = 'file', format = 'csv', path = '${in}/main2');

CREATE SINK Out WITH (connector = 'file', format = 'jsonl', path = '${out}');

INSERT INTO Out
SELECT srcIP, destIP, count(*)
FROM M1 UNION M2
[RANGE 1 min, SLIDE 1 min, WA ts]
GROUP BY srcIP, destIP;
