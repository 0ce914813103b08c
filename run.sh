#!/bin/bash
# Runs the GPU tests; a hang is cut off by timeout.
for b in grid_barrier constructs examples; do xz -dc $b.xz > ./$b; chmod +x ./$b; done
nvidia-smi -L > $OUT/card.txt 2>&1
CARGO_MANIFEST_DIR=/tmp timeout 60 ./grid_barrier --ignored gpu_ > $OUT/grid_barrier.txt 2>&1; echo "rc $?" >> $OUT/grid_barrier.txt
timeout 60 ./constructs --ignored gpu_ > $OUT/constructs.txt 2>&1; echo "rc $?" >> $OUT/constructs.txt
timeout 150 ./examples --ignored gpu_ > $OUT/examples.txt 2>&1; echo "rc $?" >> $OUT/examples.txt
tail -n 3 $OUT/*.txt
