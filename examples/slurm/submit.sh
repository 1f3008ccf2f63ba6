#!/bin/sh
# Measure one node of every partition of a Slurm cluster, then merge the stores, one per machine.
#
#   CYCLESCOPE_RUNNERS=/shared/runners sh submit.sh [PATTERN]...
#
# CYCLESCOPE_RUNNERS is a folder that all nodes see, with runner-x86_64, runner-aarch64, runner-riscv64 as far as
# the cluster has such nodes (`cyclescope runner build`). Python and cyclescope are needed where this runs and
# where measure.sbatch runs, not on the nodes that are measured. Results: stores/PARTITION.sqlite and
# machines/MACHINE.sqlite. What broke off goes on when this is run again.
set -eu
: "${CYCLESCOPE_RUNNERS:?name the folder of the runners}"
here=$(dirname "$0")

mkdir -p stores
sinfo --noheader --format=%R | sort -u >stores/partitions
job=$(sbatch --parsable --array="1-$(wc -l <stores/partitions)" "$here/measure.sbatch" "$@")
sbatch --dependency="afterany:${job%%;*}" --wrap "cyclescope store merge -d machines stores/*.sqlite"
