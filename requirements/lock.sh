#!/bin/sh
# Make the hash locks anew from the *.in files (`make lock`); needs uv.
set -eu
cd "$(dirname "$0")"
compile() { uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet "$@"; }
compile base.in -o base.txt
compile model.in --no-deps -o model.txt
compile s3.in -o s3.txt
compile google.in -o google.txt
compile mongodb.in -o mongodb.txt
compile bpe.in -o bpe.txt
compile dev.in -o dev.txt
compile render.in -o render.txt
compile ocr.in -o ocr.txt
compile audio.in -o audio.txt
compile bench.in -o bench.txt
compile stores.in -o stores.txt
compile torch.in -o torch-cuda.txt
sh ./torch-cpu.sh < torch-cuda.txt > torch-cpu.txt
