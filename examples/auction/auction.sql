-- How many bids each auction got within 12 hours of its opening, told as soon as a row of Bid closes the auction.
-- The auction query of Ding and Rundensteiner, Evaluating Window Joins over Punctuated Streams (CIKM 2004), section 1.2 and Figure 1.
-- millstream run examples/auction/auction.sql --set in=examples/auction/data --set out=/tmp/auction

-- An item is put up once: when its auction has come, no other will, so no bid is kept to wait for one.
CREATE STREAM Auction (item_id BIGINT, seller_id BIGINT, start_price DOUBLE, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED
  UNIQUE (item_id)
  WITH (connector = 'file', format = 'csv', path = '${in}/auction');

-- The hammer falls: no bid for this item will follow.
CREATE STREAM Bid (item_id BIGINT, bidder_id BIGINT, bid_price DOUBLE, ts TIMESTAMP, closed BOOLEAN)
  TIMESTAMP BY ts ORDERED
  PUNCTUATE ON (item_id) WHEN closed
  WITH (connector = 'file', format = 'parquet', path = '${in}/bid');

CREATE SINK Out WITH (connector = 'file', format = 'jsonl', path = '${out}');

INSERT INTO Out
SELECT A.item_id, count(*) AS bids
FROM Auction [RANGE 12 HOURS] AS A, Bid [NOW] AS B
WHERE A.item_id = B.item_id
GROUP BY A.item_id;
