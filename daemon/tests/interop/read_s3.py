"""Reads a partitioned data set through an S3 endpoint with the clients that are there, and compares it with the folder.

read_s3.py <host:port> <bucket> <folder> [<key id> <secret>]: prints a line of JSON for each client: what it read, or why not.
"""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow.dataset as ds
import pyarrow.fs as fs

endpoint, bucket, folder = sys.argv[1:4]
key, secret = sys.argv[4:6] if len(sys.argv) > 4 else (None, None)
host, port = endpoint.rsplit(":", 1)
files = {str(p.relative_to(folder)): p.read_bytes() for p in sorted(Path(folder).rglob("*.parquet"))}
local = ds.dataset(folder, partitioning="hive").to_table().sort_by("id")


def with_pyarrow():
    login = {"anonymous": True} if key is None else {"access_key": key, "secret_key": secret}
    s3 = fs.S3FileSystem(endpoint_override=endpoint, scheme="http", region="us-east-1", **login)
    found = [one.path for one in s3.get_file_info(fs.FileSelector(bucket, recursive=True)) if one.is_file]
    assert sorted(found) == [f"{bucket}/{name}" for name in files], found
    table = ds.dataset(bucket, filesystem=s3, partitioning="hive").to_table().sort_by("id")
    assert table.equals(local)
    return len(found)


def with_boto3():
    import boto3
    from botocore import UNSIGNED
    from botocore.config import Config
    from botocore.exceptions import ClientError

    login = {"config": Config(signature_version=UNSIGNED)}
    if key is not None:
        login = {"aws_access_key_id": key, "aws_secret_access_key": secret}
    s3 = boto3.client("s3", endpoint_url=f"http://{endpoint}", region_name="us-east-1", **login)
    assert bucket in [one["Name"] for one in s3.list_buckets()["Buckets"]]
    assert s3.get_bucket_location(Bucket=bucket)["LocationConstraint"] is None
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, PaginationConfig={"PageSize": 1})
    listed = [one for page in pages for one in page.get("Contents", [])]
    assert [one["Key"] for one in listed] == list(files), listed
    first = s3.list_objects_v2(Bucket=bucket, Delimiter="/")
    assert [one["Prefix"] for one in first["CommonPrefixes"]] == sorted({name.split("/")[0] + "/" for name in files})
    assert [one["Key"] for one in s3.list_objects(Bucket=bucket)["Contents"]] == list(files)
    for one in listed:
        bytes_ = files[one["Key"]]
        head = s3.head_object(Bucket=bucket, Key=one["Key"])
        assert head["ContentLength"] == len(bytes_) and head["ETag"] == one["ETag"]
        whole = s3.get_object(Bucket=bucket, Key=one["Key"], IfMatch=one["ETag"])["Body"].read()
        assert whole == bytes_
        part = s3.get_object(Bucket=bucket, Key=one["Key"], Range="bytes=-8")
        assert part["Body"].read() == bytes_[-8:]
    name = next(iter(files))

    def code(call):
        try:
            call()
        except ClientError as error:
            return error.response["Error"]["Code"]
        return None

    assert code(lambda: s3.get_object(Bucket=bucket, Key="none")) == "NoSuchKey"
    assert code(lambda: s3.list_objects_v2(Bucket="no-such-bucket")) == "NoSuchBucket"
    assert code(lambda: s3.get_object(Bucket=bucket, Key=name, IfMatch='"x"')) == "PreconditionFailed"
    assert code(lambda: s3.get_object(Bucket=bucket, Key=name, Range="bytes=99999999-")) == "InvalidRange"
    assert code(lambda: s3.put_object(Bucket=bucket, Key="new", Body=b"x" * 100000)) == "MethodNotAllowed"
    assert code(lambda: s3.delete_object(Bucket=bucket, Key=name)) == "MethodNotAllowed"
    assert code(lambda: s3.create_bucket(Bucket="new-bucket")) == "MethodNotAllowed"
    if key is not None:
        import urllib.request

        v4 = boto3.client("s3", endpoint_url=f"http://{endpoint}", region_name="us-east-1", config=Config(signature_version="s3v4"), **login)
        url = v4.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": name}, ExpiresIn=60)
        assert urllib.request.urlopen(url).read() == files[name]
        bad = boto3.client(
            "s3",
            endpoint_url=f"http://{endpoint}",
            region_name="us-east-1",
            aws_access_key_id=key,
            aws_secret_access_key=secret + "x",
        )
        assert code(lambda: bad.list_buckets()) == "SignatureDoesNotMatch"
        nobody = boto3.client("s3", endpoint_url=f"http://{endpoint}", region_name="us-east-1", config=Config(signature_version=UNSIGNED))
        assert code(lambda: nobody.get_object(Bucket=bucket, Key=name)) == "AccessDenied"
    return len(listed)


def with_chdb():
    import chdb

    login = "NOSIGN" if key is None else f"'{key}', '{secret}'"
    url = f"http://{endpoint}/{bucket}/**/*.parquet"
    query = f"select count(), sum(id), sum(cityHash64(s)) from s3('{url}', {login}, 'Parquet', 'id Int64, s String')"
    there = str(chdb.query(query, "CSV"))
    here = str(chdb.query(f"select count(), sum(id), sum(cityHash64(s)) from file('{folder}/*/*.parquet', 'Parquet', 'id Int64, s String')", "CSV"))
    assert there == here and there.startswith(f"{local.num_rows},"), (there, here)
    return len(files)


def with_duckdb():
    import duckdb
    import duckdb_extension_httpfs

    extension = next(Path(duckdb_extension_httpfs.__file__).parent.rglob("httpfs.duckdb_extension"))
    db = duckdb.connect()
    db.execute(f"load '{extension}'")
    login = "" if key is None else f", key_id '{key}', secret '{secret}'"
    db.execute(f"create secret (type s3, endpoint '{endpoint}', use_ssl false, url_style 'path', region 'us-east-1'{login})")
    sums = "select count(*), sum(id), sum(length(s)), min(s), max(s), sum(year) from read_parquet('{}', hive_partitioning = true)"
    there = db.execute(sums.format(f"s3://{bucket}/*/*.parquet")).fetchall()
    here = db.execute(sums.format(f"{folder}/*/*.parquet")).fetchall()
    assert there == here and there[0][0] == local.num_rows, (there, here)
    return len(files)


def command(*words):
    login = {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret} if key is not None else {}
    environment = {**os.environ, **login, "AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true"}
    environment.pop("AWS_CA_BUNDLE", None)  # which rclone can't bear
    return subprocess.run(words, check=True, capture_output=True, text=True, env=environment, timeout=120).stdout


def compare_copy(target):
    got = {str(p.relative_to(target)): p.read_bytes() for p in Path(target).rglob("*.parquet")}
    assert got == files
    return len(got)


def with_aws():
    aws = str(Path(sys.executable).parent / "aws")
    sign = [] if key is not None else ["--no-sign-request"]
    with tempfile.TemporaryDirectory() as target:
        command(aws, "s3", "cp", "--recursive", "--endpoint-url", f"http://{endpoint}", *sign, f"s3://{bucket}", target)
        return compare_copy(target)


def with_rclone():
    login = f",access_key_id={key},secret_access_key={secret}" if key is not None else ""
    remote = f":s3,provider=Other,endpoint='http://{endpoint}'{login}:{bucket}"
    with tempfile.TemporaryDirectory() as target:
        command("rclone", "copy", "--config", os.devnull, remote, target)
        return compare_copy(target)


for name, read in [
    ("pyarrow", with_pyarrow),
    ("boto3", with_boto3),
    ("chdb", with_chdb),
    ("duckdb", with_duckdb),
    ("aws", with_aws),
    ("rclone", with_rclone),
]:
    try:
        answer = {"client": name, "files": read()}
    except (ModuleNotFoundError, FileNotFoundError) as error:
        answer = {"client": name, "skipped": str(error)}
    except subprocess.CalledProcessError as error:
        answer = {"client": name, "failed": error.stderr[-2000:]}
    except BaseException as error:
        answer = {"client": name, "failed": f"{type(error).__name__}: {error}"[:2000]}
    print(json.dumps(answer), flush=True)
