//! The jobs of the demo: pi as the area under 4/(1+x²), cut into slices, by whole numbers that any shell can add.

/// How many slices, which is how many tasks the array has; three for each node of the last job.
pub const SLICES: u32 = 12;
/// Two racks of four.
pub const NODES: u32 = 8;
/// One task fits on a node at a time, so the twelve go in two waves.
pub const CPUS: u32 = 1;
/// The last job's.
pub const SUM_NODES: u32 = 4;

/// One task: 1000 of 12000 strips. The pause is there to be seen in the queue.
pub const SLICE: &str = r#"#!/bin/sh
#SBATCH --job-name=slice
#SBATCH --array=1-12
#SBATCH --output=slice-%a.out
whole=576000000   # (2 x 12000) squared
strip=$(( (SLURM_ARRAY_TASK_ID - 1) * 1000 ))
last=$(( strip + 1000 ))
area=0
while [ $strip -lt $last ]; do
    middle=$(( 2 * strip + 1 ))
    area=$(( area + 4000000000 * whole / (whole + middle * middle) ))
    strip=$(( strip + 1 ))
done
sleep 0.7
echo $area > slice-$SLURM_ARRAY_TASK_ID.area
echo "slice $SLURM_ARRAY_TASK_ID computed on $SLURMD_NODENAME"
"#;

/// The last job: every node adds three slices, the first node adds the nodes.
pub const SUM: &str = r#"#!/bin/sh
#SBATCH --job-name=sum
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --output=sum.out
echo "running on $SLURM_JOB_NODELIST, one srun task a node:"
srun --label sh -c '
    first=$(( SLURM_PROCID * 3 + 1 ))
    part=0
    for slice in $first $(( first + 1 )) $(( first + 2 )); do
        part=$(( part + $(cat slice-$slice.area) ))
    done
    echo $part > part-$SLURM_PROCID
    echo "$SLURMD_NODENAME adds slices $first to $(( first + 2 ))"
'
total=0
for part in 0 1 2 3; do
    total=$(( total + $(cat part-$part) ))
done
pi=$(( total / 12000 ))
echo "pi = $(( pi / 1000000000 )).$(( pi % 1000000000 ))"
"#;

/// What the output of the last job must end with.
pub const ANSWER: &str = "pi = 3.14159265";
