-- sink: busy
SELECT what, count(*) AS n, time_bucket(INTERVAL 5 MINUTES, ts) AS window_start, time_bucket(INTERVAL 5 MINUTES, ts) + INTERVAL 5 MINUTES AS window_end
FROM (SELECT 'door' AS what, ts FROM (SELECT kind, door, CAST(ts AS TIMESTAMPTZ) AS ts FROM read_json('${in}/doors/*.jsonl') WHERE kind <> 'heartbeat') UNION ALL SELECT 'lamp', ts FROM read_csv('${in}/lamps/*.csv'))
GROUP BY ALL
-- sink: lighted
SELECT d.door, l.lamp, l.watts, d.ts AS opened, l.ts AS lit
FROM (SELECT kind, door, CAST(ts AS TIMESTAMPTZ) AS ts FROM read_json('${in}/doors/*.jsonl') WHERE kind <> 'heartbeat') d, read_csv('${in}/lamps/*.csv') l
WHERE l.ts BETWEEN d.ts AND d.ts + INTERVAL 20 SECONDS
