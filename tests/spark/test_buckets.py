"""Bucket ids must be spread by Spark's own hash, one bucket per shuffle partition."""

from __future__ import annotations

import pytest

from millstream.runtime.spark.buckets import bucket_ids, bucket_numbers, murmur3


def test_murmur3_is_sparks() -> None:
    # select hash(0), hash(1), hash(-1), hash(42)
    assert [murmur3(value) for value in (0, 1, -1, 42)] == [933211791, -559580957, -1604776387, 29417773]


@pytest.mark.parametrize("buckets", [1, 2, 3, 8, 64])
def test_each_bucket_has_its_own_partition(buckets: int) -> None:
    ids = bucket_ids(buckets)
    assert len(set(ids)) == buckets
    assert [murmur3(number) % buckets for number in ids] == list(range(buckets))
    assert [bucket_numbers(buckets)[number] for number in ids] == list(range(buckets))


def test_spark_agrees(spark) -> None:
    from pyspark.sql.functions import spark_partition_id

    buckets = 5
    frame = spark.createDataFrame([(number,) for number in bucket_ids(buckets)], "bucket int")
    placed = frame.repartition(buckets, "bucket").withColumn("partition", spark_partition_id()).collect()
    assert {row.bucket: row.partition for row in placed} == bucket_numbers(buckets)
