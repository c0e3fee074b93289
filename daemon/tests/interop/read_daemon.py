"""Scans each file of a folder through a daemon's HTTP and compares it with what pyarrow reads in the file itself:

    python read_daemon.py <address> <source> <folder>

The answer is read as it comes, batch by batch, from the socket. Also cuts connections: of a file that breaks midway, and
by going away. Prints what differs; ends with 1 if anything does."""

import http.client
import json
import os
import sys

import pyarrow as pa
import pyarrow.parquet as pq

from compare_arrow import differences


def scan(address, **body):
    connection = http.client.HTTPConnection(address)
    connection.request("POST", "/v1/scan", json.dumps(body), {"Content-Type": "application/json"})
    return connection, connection.getresponse()


def read_table(address, **body):
    connection, response = scan(address, **body)
    if response.status != 200:
        raise RuntimeError(f"{response.status} {response.read().decode()}")
    with pa.ipc.open_stream(response) as reader:
        table = reader.read_all()
    connection.close()
    return table


def is_cut(address, **body):
    """Whether the stream of a file that breaks midway is an error, and not taken for whole."""
    connection, response = scan(address, **body)
    if response.status != 200:
        raise RuntimeError(f"expected a beginning, found {response.status}")
    try:
        with pa.ipc.open_stream(response) as reader:
            for _ in reader:
                pass
    except (OSError, pa.ArrowException, http.client.HTTPException):
        return True
    finally:
        connection.close()
    return False


def main():
    address, source, folder = sys.argv[1:]
    found = []
    equal = 0
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if name == "broken.parquet":
            if not is_cut(address, source=source, path=name):
                found.append(f"{name}: a cut stream was taken for whole")
            continue
        file = pq.ParquetFile(path)
        int96 = {column.name for column in file.schema if column.physical_type == "INT96"}
        theirs = file.read()
        for dictionary in (False, True):
            ours = read_table(address, source=source, path=name, dictionary=dictionary, batchRows=997)
            found += [f"{name}: {one}" for one in differences(theirs, ours, int96)]
        equal += 1
        # somebody who has seen enough
        connection, response = scan(address, source=source, path=name, batchRows=64)
        pa.ipc.open_stream(response).read_next_batch() if theirs.num_rows > 0 else None
        connection.close()
    if found:
        sys.exit("\n".join(found))
    print(json.dumps({"equal": equal}))


if __name__ == "__main__":
    main()
