-- sink: paid
SELECT o.order_id, o.amount, p.method, p.ts AS paid_at
FROM read_csv('${in}/orders/*.csv', types = {'amount': 'DECIMAL(10, 2)'}) o LEFT JOIN (SELECT * REPLACE (CAST(ts AS TIMESTAMPTZ) AS ts) FROM read_json('${in}/payments/*.jsonl')) p
  ON o.order_id = p.order_id AND p.ts BETWEEN o.ts - INTERVAL 1 MINUTE AND o.ts + INTERVAL 1 HOUR
-- sink: unpaid
SELECT o.order_id, o.customer, o.ts
FROM read_csv('${in}/orders/*.csv', types = {'amount': 'DECIMAL(10, 2)'}) o ANTI JOIN (SELECT * REPLACE (CAST(ts AS TIMESTAMPTZ) AS ts) FROM read_json('${in}/payments/*.jsonl')) p
  ON o.order_id = p.order_id AND p.ts BETWEEN o.ts - INTERVAL 1 MINUTE AND o.ts + INTERVAL 1 HOUR
-- sink: returned
SELECT o.order_id, o.amount
FROM read_csv('${in}/orders/*.csv', types = {'amount': 'DECIMAL(10, 2)'}) o SEMI JOIN read_csv('${in}/refunds/*.csv') r
  ON o.order_id = r.order_id AND r.ts BETWEEN o.ts AND o.ts + INTERVAL 2 HOURS
-- sink: in_euros
SELECT o.order_id, o.ts, o.amount * r.factor AS euros
FROM read_csv('${in}/orders/*.csv', types = {'amount': 'DECIMAL(10, 2)'}) o JOIN read_csv('${in}/rates.csv') r ON o.currency = r.currency
-- sink: customers
SELECT o.customer, count(*) AS payments, sum(o.amount) AS paid,
       date_trunc('hour', o.ts) AS window_start, date_trunc('hour', o.ts) + INTERVAL 1 HOUR AS window_end
FROM read_csv('${in}/orders/*.csv', types = {'amount': 'DECIMAL(10, 2)'}) o JOIN (SELECT * REPLACE (CAST(ts AS TIMESTAMPTZ) AS ts) FROM read_json('${in}/payments/*.jsonl')) p
  ON o.order_id = p.order_id AND p.ts BETWEEN o.ts - INTERVAL 1 MINUTE AND o.ts + INTERVAL 1 HOUR
GROUP BY ALL
