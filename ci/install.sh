#!/usr/bin/env bash
# Installs foldproof into an environment of its own and prints the path of its Python; all else goes to stderr.
#
#   FOLDPROOF_HOME         the folder to install into (required)
#   FOLDPROOF_PYTHON       a Python that has foldproof already: nothing is installed
#   FOLDPROOF_BASE_PYTHON  the Python to make the environment with; python3 by default, 3.11 or newer
#   FOLDPROOF_PACKAGE      what pip is to install, such as foldproof==0.1.0; by default the checkout of this script
#
# Dependencies, setuptools among them, come from requirements.txt beside this script: fixed versions, fixed hashes.
# Python's -I keeps modules that lie in the workspace out of the installation.
set -euo pipefail

: "${FOLDPROOF_HOME:?a folder to install into}"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"

if [[ -n "${FOLDPROOF_PYTHON:-}" ]]; then
  "$FOLDPROOF_PYTHON" -P -c 'import foldproof.ci' >&2
  printf '%s\n' "$FOLDPROOF_PYTHON"
  exit 0
fi

base="${FOLDPROOF_BASE_PYTHON:-python3}"
if ! "$base" -I -c 'import sys; sys.exit(sys.version_info < (3, 11))' >&2; then
  printf 'foldproof: %s is no Python of 3.11 or newer; set one up before this step\n' "$base" >&2
  exit 2
fi

"$base" -I -m venv "$FOLDPROOF_HOME/env" >&2
python="$FOLDPROOF_HOME/env/bin/python"
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
"$python" -I -m pip install --quiet --require-hashes --requirement "$here/requirements.txt" >&2
if [[ -n "${FOLDPROOF_PACKAGE:-}" ]]; then
  "$python" -I -m pip install --quiet --no-deps -- "$FOLDPROOF_PACKAGE" >&2
else
  "$python" -I -m pip install --quiet --no-deps --no-build-isolation -- "$here/.." >&2
fi
"$python" -I -m pip check >&2
printf '%s\n' "$python"
