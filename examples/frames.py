"""Links as a column of data frames: pandas, Polars, Hugging Face datasets and Spark.

python examples/frames.py pandas|polars|datasets|spark

Each function takes a frame with two columns of sentences, and returns it with a column of links, `0-0 1-2`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator

import jacana_torch as jt

PREMISE, HYPOTHESIS = "premise", "hypothesis"


def links(model: jt.Model, premises: Iterable[str], hypotheses: Iterable[str], workers: int = 1) -> list[str]:
    """The links of each pair; "" for one that cannot be aligned."""
    pairs = zip(premises, hypotheses, strict=True)
    stream = model.align_stream(pairs, workers=workers, confidence=False, on_error="yield")
    return [str(found) if isinstance(found, jt.Alignment) else "" for found in stream]


def with_pandas(frame, name: str = "core", workers: int = 1):
    """A pandas.DataFrame; `workers` are processes."""
    return frame.assign(links=links(jt.load(name), frame[PREMISE], frame[HYPOTHESIS], workers))


def with_polars(frame, name: str = "core", workers: int = 1):
    """A polars.DataFrame; of a LazyFrame use `frame.map_batches(with_polars)`."""
    import polars

    found = links(jt.load(name), frame[PREMISE], frame[HYPOTHESIS], workers)
    return frame.with_columns(polars.Series("links", found))


def with_datasets(dataset, name: str = "core", processes: int | None = None):
    """A datasets.Dataset or IterableDataset; `processes` work on parts of a Dataset."""
    model = jt.load(name)

    def batch(columns: dict[str, list[str]]) -> dict[str, list[str]]:
        return {"links": links(model, columns[PREMISE], columns[HYPOTHESIS])}

    more = {} if processes is None else {"num_proc": processes}
    return dataset.map(batch, batched=True, batch_size=1024, **more)


def with_spark(frame, name: str = "core"):
    """A pyspark.sql.DataFrame, aligned by its executors: each task loads the model once."""

    from pyspark.sql.types import StringType, StructField, StructType

    def partitions(frames: Iterator) -> Iterator:
        model = jt.load(name)
        for one in frames:
            yield one.assign(links=links(model, one[PREMISE], one[HYPOTHESIS]))

    schema = StructType([*frame.schema.fields, StructField("links", StringType())])
    return frame.mapInPandas(partitions, schema=schema)


def spark_session():
    """A session whose executors run this environment's Python, with two CPUs of this machine."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    return builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", "2000").getOrCreate()


PAIRS = {
    PREMISE: ["The old dog sat down .", "Prices rose sharply in May ."],
    HYPOTHESIS: ["A dog was sitting down .", "In May prices increased sharply ."],
    "label": [0, 1],
}


def main() -> None:
    which = sys.argv[1] if len(sys.argv) > 1 else "pandas"
    if which == "spark":
        session = spark_session()
        rows = list(zip(*PAIRS.values(), strict=True))
        with_spark(session.createDataFrame(rows, list(PAIRS)).repartition(2)).show(truncate=False)
        session.stop()
    elif which == "datasets":
        import datasets

        print(with_datasets(datasets.Dataset.from_dict(PAIRS))[:])
    elif which == "polars":
        import polars

        print(with_polars(polars.DataFrame(PAIRS)))
    else:
        import pandas

        print(with_pandas(pandas.DataFrame(PAIRS)))


if __name__ == "__main__":
    main()
