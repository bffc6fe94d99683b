SELECT a.item_id, count(*) AS bids
FROM read_csv('${in}/auction/*.csv') a, read_parquet('${in}/bid/*.parquet') b
WHERE NOT b.closed AND a.item_id = b.item_id AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 12 HOURS
GROUP BY a.item_id
