-- sink: tumbling
SELECT room, count(*) AS n, avg(celsius) AS mean, max(celsius) - min(celsius) AS spread,
       date_trunc('minute', ts) AS window_start, date_trunc('minute', ts) + INTERVAL 1 MINUTE AS window_end
FROM (SELECT * FROM read_csv('${in}/readings/*.csv') WHERE celsius > 18) GROUP BY ALL HAVING count(*) > 1
-- sink: sliding
SELECT sensor, count(DISTINCT room) AS rooms, stddev_samp(celsius) AS deviation, count_if(celsius > 24) AS hot,
       window_start, window_start + INTERVAL 5 MINUTES AS window_end
FROM (SELECT *, unnest(starts(ts, 300, 30)) AS window_start FROM (SELECT * FROM read_csv('${in}/readings/*.csv') WHERE celsius > 18))
GROUP BY sensor, window_start
-- sink: counted
SELECT min(celsius) AS coldest, max(celsius) AS warmest, window_start, window_start + 20 AS window_end
FROM (SELECT *, unnest(row_starts(number, 20, 10)) AS window_start
      FROM (SELECT *, row_number() OVER () - 1 AS number FROM read_csv('${in}/readings/*.csv')))
GROUP BY window_start
-- sink: seen
SELECT DISTINCT sensor, room, time_bucket(INTERVAL 2 MINUTES, ts) AS window_start, time_bucket(INTERVAL 2 MINUTES, ts) + INTERVAL 2 MINUTES AS window_end
FROM (SELECT * FROM read_csv('${in}/readings/*.csv') WHERE celsius > 18)
-- sink: sorted
SELECT ts, sensor, celsius FROM (SELECT * FROM read_csv('${in}/readings/*.csv') WHERE celsius > 18) WHERE room = 'cellar'
