-- Readings of three sensors that belong together: most pairs of A and B find no C, which is what feedback saves.
-- The query of Yang and Papadias, Just-In-Time Processing of Continuous Queries (ICDE 2008), section I, Figure 1a, as printed.
-- millstream run examples/feedback/three_way.sql --set in=examples/feedback/data --set out=/tmp/three_way

CREATE STREAM A (x INT, y INT, reading DOUBLE, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED WITH (connector = 'file', format = 'csv', path = '${in}/a');
CREATE STREAM B (x INT, reading DOUBLE, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED WITH (connector = 'file', format = 'csv', path = '${in}/b');
CREATE STREAM C (y INT, reading DOUBLE, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED WITH (connector = 'file', format = 'csv', path = '${in}/c');

CREATE SINK Out WITH (connector = 'file', format = 'jsonl', path = '${out}');

INSERT INTO Out
SELECT * FROM
A [RANGE 5 minutes],
B [RANGE 5 minutes],
C [RANGE 5 minutes]
WHERE A.x = B.x
AND A.y = C.y;
