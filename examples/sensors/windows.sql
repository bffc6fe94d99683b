-- One view read by several queries: tumbling, sliding and row windows, duplicate elimination and a sort over a disordered stream.
-- Windows as in Li et al., Out-of-Order Processing (PVLDB 2008), section 5.2; a view read twice is a fork (001, section 3).
-- millstream run examples/sensors/windows.sql --set in=examples/sensors/data --set out=/tmp/windows

CREATE STREAM Readings (sensor STRING, room STRING, celsius DOUBLE, ts TIMESTAMP)
  TIMESTAMP BY ts SLACK 10 SECONDS WITH (connector = 'file', format = 'csv', path = '${in}/readings');

CREATE SINK Tumbling WITH (connector = 'file', format = 'jsonl', path = '${out}/tumbling');
CREATE SINK Sliding  WITH (connector = 'file', format = 'jsonl', path = '${out}/sliding');
CREATE SINK Counted  WITH (connector = 'file', format = 'jsonl', path = '${out}/counted');
CREATE SINK Seen     WITH (connector = 'file', format = 'jsonl', path = '${out}/seen');
CREATE SINK Sorted   WITH (connector = 'file', format = 'jsonl', path = '${out}/sorted');

CREATE VIEW Warm AS SELECT sensor, room, celsius, ts FROM Readings WHERE celsius > 18;

-- Each room, each minute.
INSERT INTO Tumbling
SELECT room, count(*) AS n, avg(celsius) AS mean, max(celsius) - min(celsius) AS spread
FROM Warm [RANGE 1 MINUTE] GROUP BY room HAVING count(*) > 1;

-- The last five minutes, told every 30 seconds.
INSERT INTO Sliding
SELECT sensor, count(DISTINCT room) AS rooms, stddev(celsius) AS deviation, count_if(celsius > 24) AS hot
FROM Warm [RANGE 5 MINUTES SLIDE 30 SECONDS] GROUP BY sensor;

-- Every 20 tuples as they arrived, in steps of ten.
INSERT INTO Counted
SELECT min(celsius) AS coldest, max(celsius) AS warmest
FROM Readings [ROWS 20 SLIDE 10];

-- Which sensor reported from which room, once in two minutes.
INSERT INTO Seen
SELECT DISTINCT sensor, room FROM Warm [RANGE 2 MINUTES];

-- The stream in order again: a sort is let go by the low-water mark.
INSERT INTO Sorted
SELECT ts, sensor, celsius FROM Warm WHERE room = 'cellar' ORDER BY ts, sensor;
