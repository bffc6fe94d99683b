-- Packets answered in the same instant, on either of two links of which one comes late.
-- Query Q8 of Li et al., Out-of-Order Processing (PVLDB 2008), section 8.2, experiment N2, as printed.
-- millstream run examples/oop/q8.sql --set in=examples/oop/data --set out=/tmp/q8

CREATE STREAM M1 (srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED WITH (connector = 'file', format = 'parquet', path = '${in}/main1');
CREATE STREAM M2 (srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts SLACK 5 SECONDS WITH (connector = 'file', format = 'csv', path = '${in}/main2');
CREATE STREAM C (srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED WITH (connector = 'file', format = 'jsonl', path = '${in}/control');

CREATE SINK Out WITH (connector = 'file', format = 'jsonl', path = '${out}');

INSERT INTO Out
SELECT M1.srcIP, M1.destIP, M1.ts
FROM M1, M2 Union C as M3
WHERE M1.ts = M3.ts and M1.srcIP = M3.destIP and
M1.destIP = M3.srcIP and M1.srcPort = M3.destPort and
M1.destPort = M3.srcPort;
