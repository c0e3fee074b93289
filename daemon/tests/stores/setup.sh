#!/usr/bin/env bash
# Makes a Python environment with the S3 servers of requirements.txt in a folder, and prints where their programs are:
#
#   QANAT_STORES=$(daemon/tests/stores/setup.sh /tmp/qanat-stores) node --test daemon/tests/s3-stores.test.ts
#
# SeaweedFS takes part where a program "weed" is on the path. From Go's registry, in about half an hour on one core:
#
#   go mod download github.com/seaweedfs/seaweedfs@v0.0.0-20261109003541-7506e5f91cd6
#   copy its folder from "$(go env GOMODCACHE)", make the copy writable, and there: go build -mod=mod -o weed ./weed
set -euo pipefail
folder=${1:?usage: setup.sh <folder>}
requirements=$(dirname "$0")/requirements.txt
if [ -e "$folder" ] && [ ! -O "$folder" ]; then echo "$folder is not yours" >&2; exit 1; fi
if ! cmp -s "$requirements" "$folder/requirements.txt"; then
  rm -rf "$folder"
  python3 -m venv "$folder" >&2
  "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$requirements" >&2
  cp "$requirements" "$folder/requirements.txt" # last: marks it complete
fi
echo "$folder/bin"
