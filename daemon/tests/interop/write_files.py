"""Parquet files by pyarrow, polars and ClickHouse over types, nulls, encodings, codecs, page versions and page sizes,
every two choices of a writer's options together in at least one file:

    python write_files.py <folder> [seed]

Beside the files, <folder>/manifest.jsonl has a line for each: its writer, its options, its rows, and the checksum of
each column's canonical texts, made from the values that were written."""

import json
import os
import random as random_module
import sys

import chdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from pairs import pairwise
from values import ARROW_FLAT, ARROW_NESTED, DECIMAL, MAPS, NESTED, TIME_NANOS, ListOf, MapOf, StructOf, checksum, timestamp

ROWS = 600
NULL_RATES = [None, 0, 0.01, 0.5, 0.99, 1]
DISTINCT = [1, 12, 1000]


class Column:
    """Values of one kind, made once for all files that have it."""

    def __init__(self, random, kind, nulls, distinct, rows=ROWS):
        make = kind.maker(random, nulls, distinct)
        self.kind = kind
        self.values = [make() for _ in range(rows)]
        self.field = pa.field(kind.name, kind.arrow(nulls is None), nullable=nulls is not None)
        self.array = pa.array(self.values, self.field.type)
        self.expected = {
            "name": kind.name,
            "sha256": checksum(kind, self.values),
            "nulls": sum(value is None for value in self.values),
        }


class Columns:
    """Remembers columns: files differ in their options more than in their values."""

    def __init__(self, random):
        self.random = random
        self.made = {}

    def take(self, kinds, nulls, distinct, rows=ROWS):
        columns = []
        for kind in kinds:
            key = (kind.name, nulls, distinct, rows)
            if key not in self.made:
                self.made[key] = Column(self.random, kind, nulls, distinct, rows)
            columns.append(self.made[key])
        return columns


def table_of(columns):
    return pa.table([column.array for column in columns], pa.schema([column.field for column in columns]))


class Manifest:
    def __init__(self, folder):
        self.folder = folder
        self.lines = open(os.path.join(folder, "manifest.jsonl"), "w")
        self.count = 0

    def path(self, writer):
        self.count += 1
        return os.path.join(self.folder, f"{writer}-{self.count:03}.parquet")

    def add(self, path, options, columns, rows=ROWS):
        line = {
            "file": os.path.basename(path),
            "options": options,
            "rows": rows,
            "columns": [column.expected for column in columns],
        }
        self.lines.write(json.dumps(line) + "\n")


def encoding_of(kind, wanted, as_integer):
    """The encoding of a column in a file of one style; None leaves it to the writer."""
    allowed = kind.encodings
    if "DECIMAL" in allowed:
        digits = kind.arrow(False).precision
        stored_as_integer = as_integer and digits <= 18
        allowed = ("DELTA_BINARY_PACKED",) if stored_as_integer else ("DELTA_BYTE_ARRAY",)
        allowed += ("BYTE_STREAM_SPLIT",)
    if wanted == "split":
        return "BYTE_STREAM_SPLIT" if "BYTE_STREAM_SPLIT" in allowed else None
    deltas = [one for one in allowed if one.startswith("DELTA")]
    return deltas[0 if wanted == "delta" else -1] if deltas else None


def write_pyarrow(manifest, columns_of, random):
    options_of = pairwise(
        random,
        kinds=["flat", "nested"],
        nulls=NULL_RATES,
        distinct=DISTINCT,
        encoding=["dictionary", "dictionary overflow", "plain", "delta", "delta bytes", "split"],
        compression=["none", "snappy", "gzip", "brotli", "zstd", "lz4"],
        data_page_version=["1.0", "2.0"],
        data_page_size=[1, 500, 1 << 20],
        row_group_size=[37, 250, ROWS],
        version=["1.0", "2.4", "2.6"],
        decimal_as_integer=[False, True],
        write_page_index=[False, True],
        write_page_checksum=[False, True],
        bloom_filters=[False, True],
        store_schema=[True, False],
        compliant_nested=[True, False],
    )
    for options in options_of:
        kinds = ARROW_FLAT if options["kinds"] == "flat" else ARROW_NESTED
        if options["version"] != "2.6":
            # these versions have no nanoseconds, and the first no unsigned 32-bit integers
            kinds = [kind for kind in kinds if "_ns" not in kind.name and (options["version"] == "2.4" or kind.name != "uint32")]
        columns = columns_of.take(kinds, options["nulls"], options["distinct"])
        encoding = options["encoding"]
        element = "element" if options["compliant_nested"] else "item"
        leaves = [leaf for kind in kinds for leaf in kind.leaves(kind.name, element)]
        encodings = {path: encoding_of(kind, encoding, options["decimal_as_integer"]) for path, kind in leaves}
        chosen = {path: one for path, one in encodings.items() if one is not None}
        use_dictionary = encoding.startswith("dictionary")
        special = {}
        if encoding in ("delta", "delta bytes", "split"):
            special["column_encoding"] = chosen
        if options["bloom_filters"]:
            special["bloom_filter_options"] = {path: {"ndv": 200, "fpp": 0.05} for path, kind in leaves if kind.name != "bool"}
        path = manifest.path("pyarrow")
        pq.write_table(
            table_of(columns),
            path,
            compression=options["compression"],
            data_page_version=options["data_page_version"],
            data_page_size=options["data_page_size"],
            row_group_size=options["row_group_size"],
            write_batch_size=16 if options["data_page_size"] < 1000 else None,
            version=options["version"],
            use_dictionary=use_dictionary,
            dictionary_pagesize_limit=200 if encoding == "dictionary overflow" else None,
            store_decimal_as_integer=options["decimal_as_integer"],
            write_page_index=options["write_page_index"],
            write_page_checksum=options["write_page_checksum"],
            store_schema=options["store_schema"],
            use_compliant_nested_type=options["compliant_nested"],
            **special,
        )
        manifest.add(path, options, columns)


def write_int96(manifest, columns_of):
    for nulls in (None, 0.3):
        columns = columns_of.take([timestamp("ns"), timestamp("ns", "UTC")], nulls, 1000)
        path = manifest.path("pyarrow")
        pq.write_table(table_of(columns), path, use_deprecated_int96_timestamps=True)
        manifest.add(path, {"int96": True, "nulls": nulls}, columns)


def write_polars(manifest, columns_of, random):
    # what it stores otherwise than Arrow does, or not at all
    left_out = {"decimal256", "date64", "time_", "timestamp_s", "fixed_", "dictionary", "json", "uuid", "map_", "view"}
    is_known = lambda kind: not any(name in kind.name for name in left_out)
    flat = [kind for kind in ARROW_FLAT if is_known(kind)] + [TIME_NANOS]
    nested = [kind for kind in ARROW_NESTED if is_known(kind)]
    options_of = pairwise(
        random,
        kinds=["flat", "nested"],
        nulls=NULL_RATES,
        distinct=DISTINCT,
        compression=["uncompressed", "snappy", "gzip", "brotli", "zstd", "lz4"],
        data_page_size=[1, 500, 1 << 20],
        row_group_size=[37, 250, ROWS],
        statistics=["full", False],
    )
    for options in options_of:
        columns = columns_of.take(flat if options["kinds"] == "flat" else nested, options["nulls"], options["distinct"])
        path = manifest.path("polars")
        pl.from_arrow(table_of(columns)).write_parquet(
            path,
            compression=options["compression"],
            statistics=options["statistics"],
            row_group_size=options["row_group_size"],
            data_page_size=options["data_page_size"],
        )
        manifest.add(path, options, columns)


# ClickHouse's own types, by kind. It has no null lists, maps and tuples, and no nulls at all in keys.
CLICKHOUSE_TYPES = {
    "bool": "Bool",
    "float": "Float32",
    "double": "Float64",
    "date": "Date32",
    "timestamp_ms_UTC": "DateTime64(3, 'UTC')",
    "timestamp_us_UTC": "DateTime64(6, 'UTC')",
    "timestamp_ns_UTC": "DateTime64(9, 'UTC')",
    "string": "String",
    "decimal128_18_2": "Decimal(18, 2)",
    "decimal32_9_2": "Decimal(9, 2)",
    "decimal128_38_10": "Decimal(38, 10)",
    "decimal256_76_38": "Decimal(76, 38)",
    "fixed_5": "FixedString(5)",
    **{f"{sign}int{bits}": f"{'U' if sign else ''}Int{bits}" for bits in (8, 16, 32, 64) for sign in ("", "u")},
}


def clickhouse_type(kind, nulls):
    if isinstance(kind, ListOf):
        return f"Array({clickhouse_type(kind.element, nulls)})"
    if isinstance(kind, StructOf):
        return f"Tuple({', '.join(f'{name} {clickhouse_type(field, nulls)}' for name, field in kind.fields.items())})"
    if isinstance(kind, MapOf):
        return f"Map({clickhouse_type(kind.key, None)}, {clickhouse_type(kind.value, nulls)})"
    name = CLICKHOUSE_TYPES[kind.name]
    return name if nulls is None else f"Nullable({name})"


class Solid:
    """A list, struct or map of which no group, list or map is ever null, whatever its values are."""

    def __init__(self, kind):
        self.kind = kind
        self.name = f"solid_{kind.name}"
        self.arrow = kind.arrow
        self.text = kind.text

    def maker(self, random, nulls, distinct):
        return solid_maker(self.kind, random, nulls, distinct)


def solid_maker(kind, random, nulls, distinct):
    if isinstance(kind, ListOf):
        element = solid_maker(kind.element, random, nulls, distinct)
        return lambda: [element() for _ in range(random.choice([0, 1, 2, 5]))]
    if isinstance(kind, StructOf):
        makers = {name: solid_maker(field, random, nulls, distinct) for name, field in kind.fields.items()}
        return lambda: {name: make() for name, make in makers.items()}
    if isinstance(kind, MapOf):
        key = kind.key.maker(random, None, 1000)
        value = solid_maker(kind.value, random, nulls, distinct)
        return lambda: list({kind.key.text(one): (one, value()) for one in (key() for _ in range(random.randrange(4)))}.values())
    return kind.maker(random, nulls, distinct)


def write_clickhouse(manifest, columns_of, random):
    flat = [kind for kind in ARROW_FLAT if kind.name in CLICKHOUSE_TYPES]
    nested = [Solid(kind) for kind in [*NESTED[:9], ListOf(DECIMAL), *MAPS]]
    options_of = pairwise(
        random,
        kinds=["flat", "nested"],
        nulls=NULL_RATES,
        distinct=DISTINCT,
        compression=["none", "snappy", "gzip", "brotli", "zstd", "lz4"],
        data_page_size=[1, 500, 1 << 20],
        max_dictionary_size=[0, 300, 1 << 20],
        row_group_size=[37, 250, ROWS],
        checksums=[0, 1],
        page_index=[0, 1],
        bloom_filter=[0, 1],
    )
    source = os.path.join(manifest.folder, "source.arrow")
    for options in options_of:
        nulls = options["nulls"]
        columns = columns_of.take(flat if options["kinds"] == "flat" else nested, nulls, options["distinct"])
        table = table_of(columns)
        with pa.OSFile(source, "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table)
        types = [clickhouse_type(getattr(c.kind, "kind", c.kind), nulls) for c in columns]
        structure = ", ".join(f"`{c.kind.name}` {one}" for c, one in zip(columns, types)).replace("'", "\\'")
        path = manifest.path("clickhouse")
        settings = {
            "compression_method": f"'{options['compression']}'",
            "data_page_size": options["data_page_size"],
            "batch_size": 16 if options["data_page_size"] < 1000 else 1024,
            "max_dictionary_size": options["max_dictionary_size"],
            "row_group_size": options["row_group_size"],
            "write_checksums": options["checksums"],
            "write_page_index": options["page_index"],
            "write_bloom_filter": options["bloom_filter"],
        }
        chdb.query(
            f"insert into function file('{path}', Parquet) select * from file('{source}', ArrowStream, '{structure}') settings "
            + ", ".join(f"output_format_parquet_{name}={value}" for name, value in settings.items())
            + ", max_threads=1"
        )
        manifest.add(path, options, columns)
    os.remove(source)


def main():
    folder = sys.argv[1]
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random_module.randrange(1 << 31)
    print(f"seed {seed}")
    random = random_module.Random(seed)
    os.makedirs(folder, exist_ok=True)
    manifest = Manifest(folder)
    columns_of = Columns(random)
    write_pyarrow(manifest, columns_of, random)
    write_int96(manifest, columns_of)
    write_polars(manifest, columns_of, random)
    write_clickhouse(manifest, columns_of, random)


if __name__ == "__main__":
    main()
