"""One read of an object by somebody else: prints {ms, rows} as JSON. Libraries are loaded, and another object was read
from elsewhere, before the time begins.

    python object-peer.py <peer> <endpoint> <bucket> <key> <endpoint before> <key before> <column,column...>
"""

import json
import sys
import time

peer, endpoint, bucket, key, endpoint_before, key_before, columns = sys.argv[1:8]
names = columns.split(",")
quoted = ", ".join(f'"{name}"' for name in names)
ID, SECRET, REGION = "AKIDEXAMPLE", "secretsecret", "us-east-1"


def host_of(url):
    return url.split("://")[1]


def with_pyarrow(pre_buffer):
    import pyarrow.parquet as pq
    from pyarrow.fs import S3FileSystem

    def read(url, key):
        where = {"endpoint_override": host_of(url), "scheme": "http", "region": REGION}
        store = S3FileSystem(access_key=ID, secret_key=SECRET, **where)
        return pq.read_table(f"{bucket}/{key}", filesystem=store, columns=names, pre_buffer=pre_buffer).num_rows

    return read


def with_duckdb():
    from pathlib import Path

    import duckdb
    import duckdb_extension_httpfs

    extension = next(Path(duckdb_extension_httpfs.__file__).parent.rglob("httpfs.duckdb_extension"))
    connection = duckdb.connect()
    connection.execute(f"load '{extension}'")

    def read(url, key):
        login = f"key_id '{ID}', secret '{SECRET}', region '{REGION}'"
        where = f"endpoint '{host_of(url)}', url_style 'path', use_ssl false"
        connection.execute(f"create or replace secret store (type s3, {login}, {where})")
        return connection.execute(f"select {quoted} from 's3://{bucket}/{key}'").fetch_arrow_table().num_rows

    return read


def with_polars():
    import polars

    login = {"aws_access_key_id": ID, "aws_secret_access_key": SECRET, "aws_region": REGION, "aws_allow_http": "true"}

    def read(url, key):
        options = {**login, "aws_endpoint_url": url}
        return polars.read_parquet(f"s3://{bucket}/{key}", columns=names, storage_options=options).height

    return read


def with_clickhouse():
    import chdb

    def read(url, key):
        # every value is looked at, none is kept
        chdb.query(f"select {quoted} from s3('{url}/{bucket}/{key}', '{ID}', '{SECRET}', 'Parquet') format Null")

    return read


PEERS = {
    "pyarrow": lambda: with_pyarrow(True),
    "pyarrow-plain": lambda: with_pyarrow(False),
    "duckdb": with_duckdb,
    "polars": with_polars,
    "clickhouse": with_clickhouse,
}

read = PEERS[peer]()
read(endpoint_before, key_before)
began = time.perf_counter()
rows = read(endpoint, key)
print(json.dumps({"ms": (time.perf_counter() - began) * 1000, "rows": rows}))
