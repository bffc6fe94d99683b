-- A live auction in two halls. Bids arrive as small files, written while this runs.
-- Boston falls silent in the middle; nothing waits for it.

CREATE STREAM London (item BIGINT, price DOUBLE, closed BOOLEAN, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED
  PUNCTUATE ON (item) WHEN closed              -- the hammer falls: no more bids for this item
  ETS ON DEMAND SKEW 200 MILLISECONDS          -- when somebody waits, the source says how late it is
  WITH (connector = 'file', format = 'jsonl', path = '${in}/london', watch = true);

CREATE STREAM Boston (item BIGINT, price DOUBLE, closed BOOLEAN, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED
  PUNCTUATE ON (item) WHEN closed
  ETS ON DEMAND SKEW 200 MILLISECONDS
  WITH (connector = 'file', format = 'jsonl', path = '${in}/boston', watch = true);

CREATE SINK Turnover WITH (connector = 'file', format = 'jsonl', path = '${out}/turnover');
CREATE SINK Sold     WITH (connector = 'file', format = 'jsonl', path = '${out}/sold');

-- How much is bid in both halls together, every two seconds.
INSERT INTO Turnover
SELECT count(*) AS bids, max(price) AS highest
FROM London UNION ALL Boston [RANGE 2 SECONDS];

-- What each item went for in London, the moment its hammer falls.
INSERT INTO Sold
SELECT item, count(*) AS bids, max(price) AS price
FROM London GROUP BY item;
