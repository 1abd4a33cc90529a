#!/usr/bin/env bash
# Train on the split, in a scratch folder as the cluster gives one.
python=${1:-python}
cd "$(dirname "$0")" || exit 2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$python" train_video.py "$scratch"
