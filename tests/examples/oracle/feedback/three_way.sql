SELECT a.x, a.y, a.reading, a.ts, b.x AS x_1, b.reading AS reading_1, b.ts AS ts_1, c.y AS y_1, c.reading AS reading_2, c.ts AS ts_2
FROM read_csv('${in}/a/*.csv') a, read_csv('${in}/b/*.csv') b, read_csv('${in}/c/*.csv') c
WHERE a.x = b.x AND a.y = c.y
  AND a.ts BETWEEN b.ts - INTERVAL 5 MINUTES AND b.ts + INTERVAL 5 MINUTES
  AND a.ts BETWEEN c.ts - INTERVAL 5 MINUTES AND c.ts + INTERVAL 5 MINUTES
  AND b.ts BETWEEN c.ts - INTERVAL 5 MINUTES AND c.ts + INTERVAL 5 MINUTES
