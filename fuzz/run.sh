#!/bin/sh
# Fuzzes every entry of crates/fuzzing, or those named, and prints executions and coverage of each.
#
#   fuzz/run.sh [SECONDS [ENTRY...]]        60 seconds each by default
#
# Stable Rust will do: the coverage that libFuzzer follows is a pass of LLVM, asked for by the flags that cargo-fuzz
# gives too; no sanitizer is on, because there is no unsafe code in what is fuzzed. Finds are kept in
# fuzz/target/found and not in git; a file that made an entry fail is left in fuzz/artifacts/ENTRY. Once mended, put it
# into fuzz/regressions/ENTRY: `make test` replays that.
set -eu
cd "$(dirname "$0")"
seconds=${1:-60}
[ $# -gt 0 ] && shift
target=${CARGO_TARGET_DIR:-$PWD/target}
jobs=${JOBS:-$(nproc)}

RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing" \
    cargo build --release --target x86_64-unknown-linux-gnu --target-dir "$target"
export FUZZER="$target/x86_64-unknown-linux-gnu/release/fuzz"
export FUZZ_SECONDS="$seconds"

mkdir -p target/logs
# No name given: all of them. Asked for an unknown entry, the fuzzer lists those that it knows.
[ $# -gt 0 ] || set -- $(ULLAGE_FUZZ_TARGET=? "$FUZZER" -runs=1 -artifact_prefix=target/ 2>&1 | sed -n 's/^ULLAGE_FUZZ_TARGET must be one of: //p')
[ $# -gt 0 ] || { echo "the fuzzer names no entries" >&2; exit 1; }

one='
entry=$1
mkdir -p "target/found/$entry" "artifacts/$entry" "regressions/$entry"
if ULLAGE_FUZZ_TARGET="$entry" "$FUZZER" -max_total_time="$FUZZ_SECONDS" -timeout=10 -rss_limit_mb=2048 -max_len=65536 \
    -print_final_stats=1 -artifact_prefix="artifacts/$entry/" "target/found/$entry" "corpus/$entry" "regressions/$entry" \
    > "target/logs/$entry" 2>&1
then end=ok; else end=FAILED; fi
runs=$(sed -n "s/^stat::number_of_executed_units: *//p" "target/logs/$entry")
coverage=$(sed -n "s/.* cov: \([0-9]*\) ft: \([0-9]*\).*/\1 \2/p" "target/logs/$entry" | tail -n 1)
seeds=$(ls "corpus/$entry" 2>/dev/null | wc -l)
rmdir "regressions/$entry" "artifacts/$entry" 2>/dev/null
printf "%-22s %6s %12s %9s %9s  %s\n" "$entry" "$seeds" "${runs:-?}" ${coverage:-? ?} "$end"
[ "$end" = ok ] || { tail -n 25 "target/logs/$entry" >&2; exit 1; }
'
printf '%-22s %6s %12s %9s %9s\n' entry seeds executions edges features
if printf '%s\n' "$@" | xargs -P "$jobs" -I{} sh -c "$one" sh {}
then echo "no crash in $# entries, $seconds s each"
else echo "an entry failed: its input is in fuzz/artifacts" >&2; exit 1
fi
