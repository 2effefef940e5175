#!/usr/bin/env bash
# Runs each fuzz target for a time, two at once: fuzz/run.sh SECONDS [TARGET...]
#
# A finding ends it: the input is in fuzz/artifacts/TARGET, and `cargo +nightly fuzz run TARGET FILE` repeats it.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:?seconds}
shift
targets=("$@")
[ "${#targets[@]}" -gt 0 ] || mapfile -t targets < <(cargo +nightly fuzz list | grep -v '^seeds$')

cargo run -q --locked --manifest-path fuzz/Cargo.toml --bin seeds
cargo +nightly fuzz build
binaries=target/x86_64-unknown-linux-gnu/release
[ -d "fuzz/$binaries" ] && binaries=fuzz/$binaries

one() {
    mkdir -p "fuzz/corpus/$1" "fuzz/artifacts/$1"
    # 100 MB for whatever a file claims; 10 s are an endless loop.
    if "$binaries/$1" -max_total_time="$seconds" -malloc_limit_mb=100 -timeout=10 -print_final_stats=1 \
        -artifact_prefix="fuzz/artifacts/$1/" "fuzz/corpus/$1" "fuzz/seeds/$1" >"fuzz/artifacts/$1.log" 2>&1; then
        echo "$1: $(grep -c . <(ls "fuzz/corpus/$1")) inputs, $(grep -o 'number_of_executed_units: *[0-9]*' "fuzz/artifacts/$1.log" | grep -o '[0-9]*$') runs, nothing found"
    else
        tail -40 "fuzz/artifacts/$1.log"
        echo "$1: FOUND something, see above"
        return 1
    fi
}
export -f one
export seconds binaries
printf '%s\n' "${targets[@]}" | xargs -P 2 -I{} bash -c 'one {}'
