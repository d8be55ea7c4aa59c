#!/bin/sh
# Filter: torch-cuda.txt in, torch-cpu.txt out (what differs: torch.in).
set -eu
cat <<'HEADER'
# torch-cuda.txt without the CUDA packages and with torch's CPU wheel on Linux. Made by lock.sh; more in torch.in.
# Install with --no-deps. pip must be told where CPU wheels are (--find-links, --extra-index-url): the default index has none.
# The two lines of torch cannot be one with all hashes: pip prefers a wheel whose hash the index states to one from a folder, so
# it would take the default Linux wheel, which does not import without the CUDA packages.
HEADER
awk '
    FILENAME != "-" { if ($1 ~ /^[0-9a-f]+$/ && length($1) == 64) hashes[++count] = $1; next }
    /^[A-Za-z0-9]/  { dropped = ($0 ~ /^(nvidia-|cuda-|triton==)/) }
    dropped         { next }
    /^torch==/      {
        split($1, pin, "==")
        printf "torch==%s+cpu ; sys_platform == '\''linux'\''", pin[2]
        for (i = 1; i <= count; i++) printf " \\\n    --hash=sha256:%s", hashes[i]
        printf "\ntorch==%s ; sys_platform != '\''linux'\'' \\\n", pin[2]
        next
    }
    { print }
' torch-cpu.hashes -
