"""Bucket ids must be spread evenly by Spark's own hash."""

from __future__ import annotations

import pytest

from millstream.runtime.spark.buckets import bucket_ids, bucket_numbers, murmur3


def test_murmur3_is_sparks() -> None:
    # select hash(0), hash(1), hash(-1), hash(42)
    assert [murmur3(value) for value in (0, 1, -1, 42)] == [933211791, -559580957, -1604776387, 29417773]


@pytest.mark.parametrize("partitions", [1, 2, 3, 7, 64])
@pytest.mark.parametrize("buckets", [1, 2, 3, 8, 64])
def test_buckets_are_dealt_out_to_partitions(buckets: int, partitions: int) -> None:
    ids = bucket_ids(buckets, partitions)
    assert len(set(ids)) == buckets
    assert [murmur3(number) % partitions for number in ids] == [b % partitions for b in range(buckets)]
    numbers = bucket_numbers(buckets, partitions)
    assert [numbers[number] for number in ids] == list(range(buckets))


def test_ids_of_buckets_with_a_partition_each_are_those_of_earlier_checkpoints() -> None:
    assert bucket_ids(5, 5) == (22, 0, 4, 1, 2)


def test_spark_agrees(spark) -> None:
    from pyspark.sql.functions import spark_partition_id

    buckets, partitions = 11, 4
    frame = spark.createDataFrame([(number,) for number in bucket_ids(buckets, partitions)], "bucket int")
    placed = frame.repartition(partitions, "bucket").withColumn("partition", spark_partition_id()).collect()
    numbers = bucket_numbers(buckets, partitions)
    assert {row.bucket: row.partition for row in placed} == {id_: n % partitions for id_, n in numbers.items()}
