"""One read of an object by somebody else: prints {ms, rows} as JSON; programs and libraries are loaded before.

    python object-peer.py <peer> <endpoint> <bucket> <key> <column,column...>
"""

import json
import sys
import time

peer, endpoint, bucket, key, columns = sys.argv[1:6]
names = columns.split(",")
host = endpoint.split("://")[1]
quoted = ", ".join(f'"{name}"' for name in names)


def with_pyarrow(pre_buffer):
    import pyarrow.parquet as pq
    from pyarrow.fs import S3FileSystem

    def read():
        store = S3FileSystem(
            access_key="AKIDEXAMPLE", secret_key="secretsecret", endpoint_override=host, scheme="http", region="us-east-1"
        )
        return pq.read_table(f"{bucket}/{key}", filesystem=store, columns=names, pre_buffer=pre_buffer).num_rows

    return read


def with_duckdb():
    from pathlib import Path

    import duckdb
    import duckdb_extension_httpfs

    extension = next(Path(duckdb_extension_httpfs.__file__).parent.rglob("httpfs.duckdb_extension"))
    connection = duckdb.connect()
    connection.execute(f"load '{extension}'")
    connection.execute(
        f"create secret (type s3, key_id 'AKIDEXAMPLE', secret 'secretsecret', endpoint '{host}', url_style 'path', "
        "use_ssl false, region 'us-east-1')"
    )
    return lambda: connection.execute(f"select {quoted} from 's3://{bucket}/{key}'").fetch_arrow_table().num_rows


def with_polars():
    import polars

    options = {
        "aws_access_key_id": "AKIDEXAMPLE",
        "aws_secret_access_key": "secretsecret",
        "aws_endpoint_url": endpoint,
        "aws_region": "us-east-1",
        "aws_allow_http": "true",
    }
    return lambda: polars.read_parquet(f"s3://{bucket}/{key}", columns=names, storage_options=options).height


def with_chdb():
    import chdb

    chdb.query("select 1")
    source = f"s3('{endpoint}/{bucket}/{key}', 'AKIDEXAMPLE', 'secretsecret', 'Parquet')"

    def read():
        # every value is looked at, none is kept
        chdb.query(f"select {quoted} from {source} format Null")
        return None

    return read


PEERS = {
    "pyarrow": lambda: with_pyarrow(True),
    "pyarrow-plain": lambda: with_pyarrow(False),
    "duckdb": with_duckdb,
    "polars": with_polars,
    "clickhouse": with_chdb,
}

read = PEERS[peer]()
began = time.perf_counter()
rows = read()
print(json.dumps({"ms": (time.perf_counter() - began) * 1000, "rows": rows}))
