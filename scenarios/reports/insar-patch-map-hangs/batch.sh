#!/bin/bash
# The steps of a time series, one after the other, each with a time limit as the queue of the cluster sets one.
here=$(dirname "$0")
for step in step13_sb_inv.py; do
  echo "running $step"
  timeout 50 "${PYTHON:-python3}" "$here/$step"
  status=$?
  if [ $status -ne 0 ]; then
    echo "$step ended with $status"
    exit $status
  fi
done
