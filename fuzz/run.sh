#!/usr/bin/env bash
# Runs each fuzz target for a time, two at once: fuzz/run.sh SECONDS [TARGET...]
#
# It needs a C++ compiler for libFuzzer (g++), and no more: the coverage that libFuzzer counts is a pass of LLVM that
# every rustc has. There is no sanitizer: the readers forbid `unsafe`, and run some times faster without; debug
# assertions and overflow checks are on.
#
# A finding fails it. The input is in fuzz/artifacts/TARGET, and in base64 on the terminal if it is small;
# `fuzz/run.sh 0 TARGET` builds, then `fuzz/target/x86_64-unknown-linux-gnu/release/TARGET FILE` repeats it.
set -euo pipefail
cd "$(dirname "$0")"

seconds=${1:?seconds}
shift
targets=("$@")
[ "${#targets[@]}" -gt 0 ] || mapfile -t targets < <(basename -s .rs fuzz_targets/*.rs)

# What `cargo fuzz build --sanitizer none` passes.
coverage='-Cpasses=sancov-module --cfg fuzzing'
for option in level=4 inline-8bit-counters pc-table trace-compares stack-depth; do
    coverage+=" -Cllvm-args=-sanitizer-coverage-$option"
done
# With a target named, build scripts and macros are built without these.
machine=x86_64-unknown-linux-gnu
RUSTFLAGS=$coverage cargo build -q --locked --release --bins --target "$machine" --target-dir target
binaries=target/$machine/release
"$binaries/seeds"

# Beyond what an input may cost (src/bounds.rs): a loop without end, and what C code allocates.
one() {
    mkdir -p "corpus/$1" "artifacts/$1"
    options=(-max_total_time="$seconds" -timeout=120 -rss_limit_mb=1024 -print_final_stats=1)
    [ ! -e "dict/$1.dict" ] || options+=("-dict=dict/$1.dict")
    if "$binaries/$1" "${options[@]}" -artifact_prefix="artifacts/$1/" "corpus/$1" "seeds/$1" >"artifacts/$1.log" 2>&1; then
        runs=$(sed -n 's/.*number_of_executed_units: *//p' "artifacts/$1.log")
        echo "$1: $runs runs, $(find "corpus/$1" -type f | wc -l) inputs in the corpus, nothing found"
        return
    fi
    tail -n 60 "artifacts/$1.log"
    echo "$1: FOUND something, see above"
    find "artifacts/$1" -type f -size -9 -newer "$binaries/$1" -printf '\n%f:\n' -exec base64 {} \;
    return 1
}
export -f one
export seconds binaries
[ "$seconds" -eq 0 ] || printf '%s\n' "${targets[@]}" | xargs -P 2 -I{} bash -c 'one {}'
