"""Asks a lake through Spark in local mode. Standard input: JSON with `setUp` and `questions`, lists of statements, run in the working directory.
Standard output: JSON with an answer for each question, in the form of test/support/lake.ts."""

import datetime
import decimal
import json
import sys

from pyspark.sql import SparkSession
from pyspark.sql.types import LongType


def plain(value, is_long):
    if isinstance(value, datetime.datetime):
        return value.astimezone(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, decimal.Decimal) or is_long and value is not None:
        return str(value)
    return value


def ask(spark, statement):
    answer = spark.sql(statement)
    longs = [isinstance(field.dataType, LongType) for field in answer.schema]
    rows = [[plain(value, is_long) for value, is_long in zip(row, longs)] for row in answer.collect()]
    return {"columns": answer.columns, "rows": rows}


asked = json.load(sys.stdin)
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
for statement in asked["setUp"]:
    spark.sql(statement)
print(json.dumps([ask(spark, statement) for statement in asked["questions"]]))
spark.stop()
