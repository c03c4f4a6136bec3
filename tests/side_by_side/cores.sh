# how many CPUs, and which, where whole cores are handed out
given --mem=100
given --mem-per-cpu=100
given -n3 --mem-per-cpu=100
given -n3 --mem=100
given -n3 -c1 --mem=100
given -n2 -c2 --mem=100
given -n2 -c3 --mem=100
given -n1 -c3 --mem=100
given -n1 -c5 --mem=100
given -n3 -c3 --mem=100
given -n2 --ntasks-per-core=1 --mem=100
given -n3 --ntasks-per-core=2 --mem=100
given -n2 --ntasks-per-socket=1 --mem=100
given -n3 --ntasks-per-socket=1 --mem=100
given -n4 --ntasks-per-socket=2 --mem=100
given -N2 --mem=100
given -N2 -n3 --mem=100
given -N2 -n5 --mem=100
given -N2 --ntasks-per-node=3 --mem=100
given --ntasks-per-node=3 --mem=100
given --exclusive --mem=100
given --exclusive -n3 --mem=100
given -O -n10 --mem=100
given -O -N2 -n20 --mem=100
given --threads-per-core=1 --mem=100
given --threads-per-core=1 -n3 --mem=100
given --threads-per-core=1 -n3 -c2 --mem=100
given --threads-per-core=2 -n3 --mem=100
given --threads-per-core=1 -n3 --mem-per-cpu=100
given --hint=nomultithread -n3 --mem=100
given --hint=multithread -n3 --mem=100
given --hint=compute_bound -n3 --mem=100
given --hint=memory_bound -n3 --mem=100
given --hint=nomultithread -n5 --mem=100
given --mincpus=3 --mem=100
given --mincpus=5 -n1 --mem=100
given -B 1:1:1 --mem=100
given -B 2:1:1 -n2 --mem=100
given -B 1:2:2 -n4 --mem=100
given -B 2:2:1 -n4 --mem=100
given --sockets-per-node=2 -n2 --mem=100
given --cores-per-socket=2 -n2 --mem=100
given -n9 --mem=100
given -n13 --mem=100
given -n24 --mem=100
given -c 8 --mem=100
given -c 9 --mem=100
given -n13 --threads-per-core=1 --mem=100
given -n8 --ntasks-per-core=1 --mem=100
given --mem-per-cpu=20000 -n2
given --mem-per-cpu=20000 -n3
given --mem-per-cpu=20000 -n1 -c3
given -N3 --mem=100
given -n2 --ntasks-per-core=1 --mem-per-cpu=100
given -n2 -c3 --ntasks-per-core=1 --mem-per-cpu=100
given -n2 -c2 --ntasks-per-core=1 --mem-per-cpu=100
given -n3 -c2 --ntasks-per-core=1 --mem-per-cpu=100
given -n2 -c3 --threads-per-core=1 --mem-per-cpu=100
given -c3 --threads-per-core=1 --mem-per-cpu=100
given --exclusive --mem-per-cpu=100
given --exclusive --threads-per-core=1 --mem-per-cpu=100
given -n10 -N3 --mem=100
given -n20 -N3 --mem=100
given -n3 -c2 -N2 --mem=100
given -n3 -N2 --ntasks-per-core=1 --mem=100
given --mincpus=3 --mem-per-cpu=100
given -O -n10 --mem-per-cpu=100
given -n3 --ntasks-per-node=2 --mem=100
given -N2 --ntasks-per-node=2 -c3 --mem=100
given -n8 -N2 -m cyclic --mem=100
given -n5 -N2 -m cyclic --mem=100
given -n5 -N2 -m plane=2 --mem=100
given -N1-2 -n9 --mem=100
given -N1-3 -n3 --mem=100
given -n5 --spread-job --mem=100
given -n5 --use-min-nodes --mem=100
given --exclusive -N2 -n4 --mem=100
given --exclusive -N2 -n5 --mem=100
given --exclusive -N2 -n4 --mem=100 -m pack
given --exclusive -N2 --mem=100
given --exclusive -N2 -n9 --mem=100
given --mem=100 -n5 -m block:block
given --mem=100 -n3 -m block:block
given --mem=100 -n3 -m block:cyclic
given --mem=100 -n3 -m block:fcyclic
given --mem=100 -n2 -c2 -m block:block
given --mem=100 -w n2 -n3
given --mem=100 -n4 --ntasks-per-node=2
given --mem=100 -N2 -c5
given --mem-per-cpu=100 -N2 -n3
given --mem=100 -c4 --hint=nomultithread
given --mem=0 -n3
given --mem=100 -a 1 -n3
# steps
given_step '-n3 --mem=100' '-n1'
given_step '-n3 --mem=100' '-n2'
given_step '-n3 --mem=100' '-n3'
given_step '-n3 --mem=100' '--exact -n1'
given_step '-n3 --mem=100' '--exact -n2'
given_step '-n3 --mem=100' '--exact -n3'
given_step '-n3 --mem=100' '--exact -n1 -c2'
given_step '-n3 --mem=100' '--exact -n1 -c3'
given_step '-n3 --mem=100' '-c1 -n1'
given_step '-n3 --mem=100' '-O -n9'
given_step '-n3 --mem=100' '--overlap -n1'
given_step '-n3 --mem=100' '-n5'
given_step '-n3 --mem=100' '-c2'
given_step '-n2 -c2 --mem=100' '-n1'
given_step '-n2 -c2 --mem=100' '-n2'
given_step '-n2 -c2 --mem=100' '-n3'
given_step '-n2 -c2 --mem=100' '--exact -n1'
given_step '-n2 -c2 --mem=100' '--exact -n2'
given_step '-n2 -c2 --mem=100' '--exact -n3'
given_step '-n2 -c2 --mem=100' '--exact -n1 -c2'
given_step '-n2 -c2 --mem=100' '--exact -n1 -c3'
given_step '-n2 -c2 --mem=100' '-c1 -n1'
given_step '-n2 -c2 --mem=100' '-O -n9'
given_step '-n2 -c2 --mem=100' '--overlap -n1'
given_step '-n2 -c2 --mem=100' '-n5'
given_step '-n2 -c2 --mem=100' '-c2'
# beside each other
beside -n2 -n2 -n3 -n1
beside -c3 -n1 -n1
beside '-n1 -c4' '-n1 -c2' '-n1 -c2'
beside '-c2 -m block:block' '-c4 -m block:block'
# what the cluster says
scontrol show config | grep SelectType
scontrol show node n1 | grep -oE 'CPUTot=[^ ]*|CoresPerSocket=[^ ]*|Sockets=[^ ]*|ThreadsPerCore=[^ ]*|CfgTRES=[^ ]*'
sinfo -h -o '%C %X %Y %Z %z %c'
srun -n3 --mem=100 true
srun -n3 --mem=100 sh -c 'echo $SLURM_CPUS_ON_NODE $SLURM_JOB_CPUS_PER_NODE'
salloc -Q -n3 --mem=100 sh -c 'echo $SLURM_JOB_CPUS_PER_NODE $SLURM_TASKS_PER_NODE $SLURM_CPUS_ON_NODE'
sbatch --mem=100 -H -n3 --wrap true >/dev/null; squeue -h -o '%C %D %T'; scontrol show job $(squeue -h -o %i) | grep -oE 'NumCPUs=[^ ]*|TRES=[^ ]*|NumNodes=[^ ]*'
