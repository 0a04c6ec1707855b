# Sourced by bench/run and bench/gemm after tools/setup.sh: installs and builds what a measurement needs, under target/bench.

bench_work=$PWD/target/bench
bench_peers='numpy==2.4.6 onnx==1.23.2 onnxruntime==1.32.0 openvino==2026.4.1'
bench_makers='torch==2.15.0 torchvision==0.29.2 transformers==5.24.0 onnx==1.23.2 onnxscript==0.7.2'

# bench_venv NAME PACKAGES: a virtual environment in target/bench/NAME. The stamp holds the list: a changed pin installs anew.
bench_venv() {
    local dir=$bench_work/$1 stamp=$bench_work/$1/.complete
    if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$2" ]; then
        return
    fi
    need_python venv ensurepip pip
    say "Python packages in $dir: $2"
    rm -rf "$dir"
    "$python" -m venv "$dir" >&2 || die "python3 -m venv failed"
    # shellcheck disable=SC2086
    "$dir/bin/python" -m pip install -q --disable-pip-version-check --only-binary :all: $2 >&2 \
        || die "pip could not install: $2"
    printf '%s\n' "$2" > "$stamp"
}

# Everything but models. TGC_BIN may name a folder that holds tgc and tgc-run already, PEERS a built peers program; both are
# built in release mode otherwise. Sets $bench_options.
bench_prepare() {
    mkdir -p "$bench_work"
    need_build_tools
    bench_venv venv "$bench_peers"
    local bin=${TGC_BIN:-}
    if [ -z "$bin" ]; then
        cargo build --release -p tgc -p tgc-run >&2 || die "tgc could not be built"
        bin=$(build_dir)/release
    fi
    local peers=${PEERS:-}
    if [ -z "$peers" ]; then
        say "the program that measures the peers (bench/peers)"
        cargo build --release --locked --manifest-path bench/peers/Cargo.toml --target-dir "$bench_work/peers" >&2 \
            || die "bench/peers could not be built"
        peers=$bench_work/peers/release/peers
    fi
    cc -O3 -march=native -pthread bench/peak.c -o "$bench_work/peak" || die "bench/peak.c could not be built"
    local site
    site=$("$bench_work/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
    bench_options=(--work "$bench_work" --tgc "$bin/tgc" --tgc-run "$bin/tgc-run" --peers "$peers" --peak "$bench_work/peak"
        --onnxruntime "$(echo "$site"/onnxruntime/capi/libonnxruntime.so.*)"
        --openvino "$(echo "$site"/openvino/libs/libopenvino_c.so.*)")
}
