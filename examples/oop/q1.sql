-- How many packets came over three links in each minute; the quiet link must not hold up the busy ones.
-- Query Q1 of Li et al., Out-of-Order Processing (PVLDB 2008), section 2, as printed.
-- millstream run examples/oop/q1.sql --set in=examples/oop/data --set out=/tmp/q1

CREATE STREAM Control (srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED WITH (connector = 'file', format = 'jsonl', path = '${in}/control');
CREATE STREAM Main1 (srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED WITH (connector = 'file', format = 'parquet', path = '${in}/main1');
CREATE STREAM Main2 (srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts SLACK 5 SECONDS WITH (connector = 'file', format = 'csv', path = '${in}/main2');

CREATE SINK Out WITH (connector = 'file', format = 'jsonl', path = '${out}');

INSERT INTO Out
SELECT count (*)
FROM Control union Main1 union Main2
[RANGE 1 minute, SLIDE 1 minute, WA ts];
