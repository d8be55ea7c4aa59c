#!/bin/sh
# Filter: torch-cuda.txt in, torch-cpu.txt out. Drops the CUDA packages and accepts the CPU wheels too (why: torch.in).
set -eu
cat <<'HEADER'
# torch-cuda.txt without the CUDA packages, and with the hashes of torch's CPU wheels added. Made by lock.sh; reasons in torch.in.
# Install with --no-deps. A CPU wheel is taken where pip is told of one (--find-links, --extra-index-url); without one, on Linux
# the default wheel is taken, which does not import without the CUDA packages: install torch-cuda.txt there.
HEADER
awk '
    FILENAME != "-" { if ($1 ~ /^[0-9a-f]+$/ && length($1) == 64) hashes[++count] = $1; next }
    /^[A-Za-z0-9]/  { dropped = ($0 ~ /^(nvidia-|cuda-|triton==)/) }
    dropped         { next }
    { print }
    /^torch==/      { for (i = 1; i <= count; i++) printf "    --hash=sha256:%s \\\n", hashes[i] }
' torch-cpu.hashes -
