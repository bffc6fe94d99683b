-- The same question where nobody promises anything of items: time alone says when an auction is over, 12 hours after its opening.
-- The window join that Ding and Rundensteiner, Evaluating Window Joins over Punctuated Streams (CIKM 2004), start from in section 1.2.
-- millstream run examples/auction/by_time.sql --set in=examples/auction/data --set out=/tmp/auction-by-time

CREATE STREAM Auction (item_id BIGINT, seller_id BIGINT, start_price DOUBLE, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED
  WITH (connector = 'file', format = 'csv', path = '${in}/auction');
CREATE STREAM Bid (item_id BIGINT, bidder_id BIGINT, bid_price DOUBLE, ts TIMESTAMP, closed BOOLEAN)
  TIMESTAMP BY ts ORDERED
  WITH (connector = 'file', format = 'parquet', path = '${in}/bid');

CREATE SINK Out WITH (connector = 'file', format = 'jsonl', path = '${out}');

-- The row that closes an auction is one like others, and the groups need a time to be closed by.
INSERT INTO Out
SELECT A.item_id, count(*) AS bids
FROM Auction [RANGE 12 HOURS] AS A, Bid [NOW] AS B
WHERE A.item_id = B.item_id AND NOT B.closed
GROUP BY A.item_id, A.ts;
