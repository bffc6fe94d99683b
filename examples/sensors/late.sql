-- A source that breaks its promises: what comes later than the slack, or is no tuple at all, goes to the dead letters with the reason.
-- Late tuples as in Li et al., Out-of-Order Processing (PVLDB 2008), appendix A.1.1 (grammatical punctuation): never dropped in silence.
-- millstream run examples/sensors/late.sql --set in=examples/sensors/data --set out=/tmp/late

SET dead_letters.path = '${out}/letters';

CREATE STREAM Troubled (sensor STRING, celsius DOUBLE, ts TIMESTAMP)
  TIMESTAMP BY ts SLACK 10 SECONDS WITH (connector = 'file', format = 'csv', path = '${in}/troubled.csv');

CREATE SINK Minutes WITH (connector = 'file', format = 'jsonl', path = '${out}/minutes');

INSERT INTO Minutes
SELECT sensor, count(*) AS n, min(celsius) AS coldest
FROM Troubled [RANGE 1 MINUTE] GROUP BY sensor;
