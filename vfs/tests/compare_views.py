"""Reads each pair of files NAME.parquet and NAME-view.parquet of a folder with pyarrow, polars and ClickHouse, and says which differ."""
import json
import pathlib
import sys

import chdb
import polars
import pyarrow.parquet as parquet


def clickhouse(path):
    return chdb.query(f"SELECT * FROM file('{path}', Parquet) ORDER BY ALL FORMAT JSONEachRow").bytes()


READERS = {
    "pyarrow": lambda path: parquet.read_table(path),
    "polars": lambda path: polars.read_parquet(path),
    "clickhouse": clickhouse,
}

equal, different = 0, []
for view in sorted(pathlib.Path(sys.argv[1]).glob("*-view.parquet")):
    file = view.with_name(view.name.replace("-view", ""))
    for name, read in READERS.items():
        before, now = read(str(file)), read(str(view))
        same = before.equals(now) if hasattr(before, "equals") else before == now
        if same and len(before) > 0:
            equal += 1
        else:
            different.append(f"{name}: {view.name}")
print(json.dumps({"equal": equal, "different": different}))
