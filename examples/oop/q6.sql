-- Packets and their answers within the same ten seconds; each side is a union of two links.
-- Query Q6 of Li et al., Out-of-Order Processing (PVLDB 2008), section 8.1, experiment G3.
-- Changed: the paper's ts is a number of seconds, ours a TIMESTAMP, so `M1.ts/10` is written `unix_seconds(M1.ts) div 10`.
-- millstream run examples/oop/q6.sql --set in=examples/oop/data --set out=/tmp/q6

CREATE STREAM A (srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED WITH (connector = 'file', format = 'csv', path = '${in}/a');
CREATE STREAM B (srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED WITH (connector = 'file', format = 'csv', path = '${in}/b');
CREATE STREAM C (srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts SLACK 3 SECONDS WITH (connector = 'file', format = 'csv', path = '${in}/c');
CREATE STREAM D (srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, ts TIMESTAMP)
  TIMESTAMP BY ts SLACK 3 SECONDS WITH (connector = 'file', format = 'csv', path = '${in}/d');

CREATE SINK Out WITH (connector = 'file', format = 'jsonl', path = '${out}');

INSERT INTO Out
SELECT M1.srcIP, M1.destIP, M1.ts
FROM A UNION B as M1, C UNION D as M2
WHERE unix_seconds(M1.ts) div 10 = unix_seconds(M2.ts) div 10 and M1.srcIP = M2.destIP and
M1.destIP = M2.srcIP and M1.srcPort = M2.destPort and
M1.destPort = M2.srcPort;
