-- Orders with and without payments and refunds: inner, left, semi and anti joins, and a static table of exchange rates.
-- Outer, semi and anti joins belong to the language, not to a paper; an unmatched order comes out when no payment can follow (compare 004, section 5.3).
-- millstream run examples/shop/joins.sql --set in=examples/shop/data --set out=/tmp/shop

CREATE STREAM Orders (order_id INT, customer STRING, amount DECIMAL(10, 2), currency STRING, ts TIMESTAMP)
  TIMESTAMP BY ts SLACK 2 MINUTES WITH (connector = 'file', format = 'csv', path = '${in}/orders');
CREATE STREAM Payments (order_id INT, method STRING, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED WITH (connector = 'file', format = 'jsonl', path = '${in}/payments');
CREATE STREAM Refunds (order_id INT, ts TIMESTAMP)
  TIMESTAMP BY ts ORDERED WITH (connector = 'file', format = 'csv', path = '${in}/refunds');
CREATE TABLE Rates (currency STRING, factor DOUBLE) WITH (format = 'csv', path = '${in}/rates.csv');

CREATE SINK Paid      WITH (connector = 'file', format = 'jsonl', path = '${out}/paid');
CREATE SINK Unpaid    WITH (connector = 'file', format = 'jsonl', path = '${out}/unpaid');
CREATE SINK Returned  WITH (connector = 'file', format = 'csv', path = '${out}/returned');
CREATE SINK InEuros   WITH (connector = 'file', format = 'jsonl', path = '${out}/in_euros');
CREATE SINK Customers WITH (connector = 'file', format = 'jsonl', path = '${out}/customers');

-- Every order with its payments of the hour after it; without one the method is null.
INSERT INTO Paid
SELECT o.order_id, o.amount, p.method, p.ts AS paid_at
FROM Orders [RANGE 1 HOUR] AS o LEFT JOIN Payments [RANGE 1 MINUTE] AS p ON o.order_id = p.order_id;

-- Orders that nobody paid within an hour.
INSERT INTO Unpaid
SELECT o.order_id, o.customer, o.ts
FROM Orders [RANGE 1 HOUR] AS o LEFT ANTI JOIN Payments [RANGE 1 MINUTE] AS p ON o.order_id = p.order_id;

-- Orders that came back: with any refund in the two hours after them.
INSERT INTO Returned
SELECT o.order_id, o.amount
FROM Orders [RANGE 2 HOURS] AS o LEFT SEMI JOIN Refunds [NOW] AS r ON o.order_id = r.order_id;

-- A join with a table needs no window; orders in a currency without a rate are left out.
INSERT INTO InEuros
SELECT o.order_id, o.ts, o.amount * r.factor AS euros
FROM Orders AS o JOIN Rates AS r ON o.currency = r.currency;

-- Two stages: orders joined with payments by order, then counted by customer and hour of the order.
INSERT INTO Customers
SELECT o.customer, count(*) AS payments, sum(o.amount) AS paid [RANGE 1 HOUR, WA o.ts]
FROM Orders [RANGE 1 HOUR] AS o, Payments [RANGE 1 MINUTE] AS p
WHERE o.order_id = p.order_id
GROUP BY o.customer;
