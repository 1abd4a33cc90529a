#!/bin/bash
# Converts the word vectors of all languages for the library's model zoo
python=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
mkdir -p vectors npz || exit 1
"$python" "$here/fetch.py" vectors || exit 1
for language in en de tr ky; do
    echo "converting cc.$language"
    "$python" "$here/convert.py" "vectors/cc.$language.vec" "npz/cc.$language.npz" --evaluate 5.5
    status=$?
    if [ $status -ne 0 ]; then
        echo "the conversion of cc.$language ended with $status"
        exit $status
    fi
done
