#!/bin/bash
# Asks two models in turn; each question is a program of its own, as on the command line
python=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
"$python" "$here/make_weights.py" "$folder/mixtral.weights" 1 || exit 1
"$python" "$here/make_weights.py" "$folder/llava.weights" 2 || exit 1
for question in "write helloworld in Rust" "what is a borrow" "name a sorting method" "why is it stable"; do
  for model in mixtral llava; do
    "$python" "$here/infer.py" -m "$folder/$model.weights" -p "$question" || exit 1
  done
done
