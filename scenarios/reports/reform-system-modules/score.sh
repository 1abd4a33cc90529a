#!/bin/bash
# Writes the country's variables, and scores the reforms of the budget
python=$1
here=$(cd "$(dirname "$0")" && pwd)
export OPENBLAS_NUM_THREADS=1
"$python" "$here/write_country.py" country || exit 1
"$python" "$here/score_reforms.py" country --seconds 27
