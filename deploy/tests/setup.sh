#!/usr/bin/env bash
# Makes a Python environment with hadolint, which the registry of Python has as a binary, and prints where it is:
#
#   QANAT_HADOLINT=$(deploy/tests/setup.sh /tmp/qanat-deploy) node --test deploy/tests/container.test.ts
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
echo "$folder/bin/hadolint"
