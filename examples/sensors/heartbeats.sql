-- A door that is seldom opened sends a heartbeat each minute, so that windows over the union with a busy stream close without waiting for it.
-- Heartbeats are punctuations on time: Li et al., Out-of-Order Processing (PVLDB 2008), section 3.2; idle-waiting: Bai et al. (ICDE 2007), section 1.
-- millstream run examples/sensors/heartbeats.sql --set in=examples/sensors/data --set out=/tmp/heartbeats

-- Between two heartbeats the tuples come in any order: without ORDERED or SLACK only the heartbeats move time on.
CREATE STREAM Doors (kind STRING, door STRING, ts TIMESTAMP)
  TIMESTAMP BY ts
  PUNCTUATE ON (ts) WHEN kind = 'heartbeat'
  ETS NONE
  WITH (connector = 'file', format = 'jsonl', path = '${in}/doors');
CREATE STREAM Lamps (lamp STRING, watts INT, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED
  ETS ON DEMAND SKEW 500 MILLISECONDS
  WITH (connector = 'file', format = 'csv', path = '${in}/lamps');

CREATE SINK Busy    WITH (connector = 'file', format = 'jsonl', path = '${out}/busy');
CREATE SINK Lighted WITH (connector = 'file', format = 'jsonl', path = '${out}/lighted');

-- What happened in each five minutes, by kind.
INSERT INTO Busy
SELECT what, count(*) AS n
FROM (SELECT 'door' AS what, ts FROM Doors UNION ALL SELECT 'lamp' AS what, ts FROM Lamps) [RANGE 5 MINUTES] AS Events
GROUP BY what;

-- Lamps that went on within 20 seconds after a door was opened.
INSERT INTO Lighted
SELECT d.door, l.lamp, l.watts, d.ts AS opened, l.ts AS lit
FROM Doors [RANGE 20 SECONDS] AS d, Lamps [NOW] AS l;
