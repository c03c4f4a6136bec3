# miniwdl with its Slurm backend: each task is an srun; a shell stands in for the container.
# packages: miniwdl-slurm setuptools<81
set -e
mkdir -p bin; cat > bin/singularity <<'S'
#!/bin/bash
# Stands in for Singularity: makes an image that is nothing, and runs a command on the machine itself where the directories are.
case $1 in
  --version | version) echo "singularity-ce version 3.11.0"; exit ;;
  pull) for word; do [[ $word != *.sif ]] || { mkdir -p "${word%/*}"; touch "$word"; }; done; exit 0 ;;
esac
from=() to=() work=
args=("$@")
for ((i = 0; i < ${#args[@]}; i++)); do
  case ${args[i]} in
    --bind | -B) IFS=: read -r a b _ <<< "${args[i+1]}"; from+=("$a"); to+=("$b") ;;
    --pwd) work=${args[i+1]} ;;
  esac
  [[ ${args[i]} == *.sif || ${args[i]} == docker://* ]] && break
done
command=("${args[@]:i+1}")
here() { # where a path of the container is on the machine
  for ((k = ${#from[@]} - 1; k >= 0; k--)); do
    [[ $1 == *"${to[k]}"* ]] && { echo "${1//${to[k]}/${from[k]}}"; return; }
  done
  echo "$1"
}
work=$(here "$work")
for ((m = 0; m < ${#command[@]}; m++)); do command[m]=$(here "${command[m]}"); done
cd "$work" && exec "${command[@]}"
S
chmod +x bin/singularity; export PATH=$PWD/bin:$PATH
cat > hello.wdl <<'S'
version 1.0
workflow hello {
  input { Array[String] names }
  scatter (name in names) { call greet { input: name = name } }
  output { Array[String] all = greet.said }
}
task greet {
  input { String name }
  command <<< echo "hello ~{name} $SLURM_JOB_NAME" >>>
  output { String said = read_string(stdout()) }
  runtime { docker: "ubuntu:22.04" cpu: 1 memory: "200 MB" time_minutes: 5 slurm_partition: "main" }
}
S
export MINIWDL__SCHEDULER__CONTAINER_BACKEND=slurm_singularity MINIWDL__SINGULARITY__EXE='["singularity"]' MINIWDL__FILE_IO__ALLOW_ANY_INPUT=true
export MINIWDL__SINGULARITY__IMAGE_CACHE=$PWD/images
miniwdl run --dir runs -v hello.wdl names=ada names=bob > out.json 2> log || { tail -40 log; exit 1; }
cat out.json
grep -q 'hello ada' out.json && grep -q 'hello bob' out.json
sacct -X -n -P -o JobName,State | grep -c COMPLETED
