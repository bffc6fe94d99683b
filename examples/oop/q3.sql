-- Connections made, counted by the second of the SYN and the second of the SYN_ACK; the mark of the first of them closes the counts.
-- Query Q3 of Li et al., Out-of-Order Processing (PVLDB 2008), section 7.
-- Changed: SYN and SYN_ACK stand in quotes, because the flag is a text. The paper closes the counts by joint punctuation.
-- millstream run examples/oop/q3.sql --set in=examples/oop/data --set out=/tmp/q3

CREATE STREAM S0 (srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, ts TIMESTAMP, flag STRING)
  TIMESTAMP BY ts ORDERED WITH (connector = 'file', format = 'csv', path = '${in}/s0');
CREATE STREAM S1 (srcIP STRING, srcPort INT, destIP STRING, destPort INT, len INT, ts TIMESTAMP, flag STRING)
  TIMESTAMP BY ts SLACK 5 SECONDS WITH (connector = 'file', format = 'csv', path = '${in}/s1');

CREATE SINK Out WITH (connector = 'file', format = 'jsonl', path = '${out}');

INSERT INTO Out
SELECT S0.ts, S1.ts, count(*)
FROM S0 [WA ts, RANGE 2 min],
     S1 [WA ts, RANGE 2 min]
WHERE S0.destIP = S1.srcIP AND S0.destPort = S1.srcPort
      AND S0.flag = 'SYN' AND S1.flag = 'SYN_ACK'
      AND S0.ts < S1.ts
GROUP BY S0.ts, S1.ts;
