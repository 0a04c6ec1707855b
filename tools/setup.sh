# Sourced by ./demo and ./test: puts on a Debian 12 machine that has Rust what the build, the demo and the tests need.
# Every function says what it does and does nothing where the thing is already there. No other file installs anything.

export PYTHONDONTWRITEBYTECODE=1

say() { printf '==> %s\n' "$*" >&2; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

# Runs a command as root, by sudo where we are somebody else.
as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        die "'$*' needs root: run this as root, or install sudo"
    fi
}

apt_updated=no
# apt_install PACKAGE...
apt_install() {
    command -v apt-get >/dev/null || die "this machine has no apt-get; install by hand what corresponds to: $*"
    if [ "$apt_updated" = no ]; then
        say "apt-get update"
        as_root apt-get update -qq || say "apt-get update reported errors; going on with the lists it has"
        apt_updated=yes
    fi
    say "apt-get install $*"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >&2 \
        || die "apt-get could not install: $*"
}

# Rust, a C toolchain to link with, and LLVM 22.
need_build_tools() {
    if ! command -v cargo >/dev/null && [ -x "$HOME/.cargo/bin/cargo" ]; then
        PATH="$HOME/.cargo/bin:$PATH"
    fi
    command -v cargo >/dev/null || die "cargo is not on PATH; install Rust 1.95 or later first"
    local missing=()
    # g++ rather than gcc alone: LLVM's libraries are linked with libstdc++.
    command -v cc >/dev/null && command -v c++ >/dev/null || missing+=(gcc g++ libc6-dev)
    [ -e /usr/lib/llvm-22/include/llvm-c/Core.h ] || missing+=(llvm-22-dev)
    if [ ${#missing[@]} -gt 0 ]; then
        apt_install "${missing[@]}"
    fi
}

# rustfmt and clippy, which a minimal Rust installation lacks.
need_rust_components() {
    local missing=()
    cargo fmt --version >/dev/null 2>&1 || missing+=(rustfmt)
    cargo clippy --version >/dev/null 2>&1 || missing+=(clippy)
    [ ${#missing[@]} -eq 0 ] && return
    command -v rustup >/dev/null || die "cargo has no ${missing[*]}, and there is no rustup to add it"
    say "rustup component add ${missing[*]}"
    rustup component add "${missing[@]}" >&2 || die "rustup could not add: ${missing[*]}"
}

# Sets $python to an interpreter of version 3.11 or later that can import the modules named, installing Debian's if there is none.
need_python() {
    local candidate imports
    imports="import sys; assert sys.version_info >= (3, 11); import $(IFS=,; echo "$*")"
    for candidate in python3 /usr/bin/python3; do
        if "$candidate" -c "$imports" 2>/dev/null; then
            python=$candidate
            return
        fi
    done
    apt_install python3 python3-pip python3-venv
    /usr/bin/python3 -c "$imports" || die "python3 cannot import $* even after installing Debian's packages"
    python=/usr/bin/python3
}

# need_models [--only NAME]...: the trained models, into target/models.
need_models() {
    need_python pip
    say "trained models in target/models (tools/fetch_models.py $*)"
    "$python" tools/fetch_models.py "$@" >&2 || die "the models could not be fetched"
}

# Python tools of the tests, pinned, in target/venv. The stamp holds this list: a changed pin installs anew.
venv_packages='numpy==2.4.6 onnx==1.23.2 onnxruntime==1.32.0'
need_venv() {
    local stamp=target/venv/.complete
    if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$venv_packages" ] && target/venv/bin/python -c '' 2>/dev/null; then
        return
    fi
    need_python venv ensurepip pip
    say "Python tools in target/venv: $venv_packages"
    rm -rf target/venv
    mkdir -p target
    "$python" -m venv target/venv >&2 || die "python3 -m venv failed"
    # shellcheck disable=SC2086
    target/venv/bin/python -m pip install -q --disable-pip-version-check --only-binary :all: $venv_packages >&2 \
        || die "pip could not install: $venv_packages"
    printf '%s\n' "$venv_packages" > "$stamp"
}

# The small models of tools/make_models.py, in target/models/made; made anew when the generator changes.
need_made_models() {
    local made=target/models/made
    if [ -f "$made/.complete" ] && cmp -s "$made/.complete" tools/make_models.py; then
        return
    fi
    say "small test models in $made (tools/make_models.py)"
    rm -rf "$made"
    target/venv/bin/python tools/make_models.py "$made" >&2 || die "the test models could not be made"
    cp tools/make_models.py "$made/.complete"
}

# Where cargo puts what it builds, as an absolute path; to be called in the repository's root.
build_dir() {
    local dir=${CARGO_TARGET_DIR:-target}
    case $dir in
        /*) echo "$dir" ;;
        *) echo "$PWD/$dir" ;;
    esac
}
