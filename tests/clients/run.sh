#!/bin/bash
# Real clients on a `spur up` cluster: installs them, runs each script of this folder, and prints a table.
#   tests/clients/run.sh [--venv DIR] [--spur BINARY] [NAME…]
# Not part of `cargo test`: it installs packages from the network.
here=$(cd "$(dirname "$0")" && pwd)
venv=/work/clients/main spur=${SPUR:-$here/../../target/debug/spur} patience=240
while [[ $1 == --* ]]; do case $1 in --venv) venv=$2; shift 2;; --spur) spur=$2; shift 2;; *) echo "what is $1?" >&2; exit 2;; esac; done
if [ ! -x "$venv/bin/python" ]; then
  python3 -m venv "$venv" && "$venv/bin/pip" install -q -r "$here/requirements.txt" || exit 1
fi
names=("$@"); [ ${#names[@]} = 0 ] && names=($(cd "$here" && ls client_* | sed 's/client_//; s/\..*//'))
dir=$(mktemp -d /tmp/spur-clients-XXXXXX)
"$spur" up --nodes 2 --cpus 8 --memory 8G --dir "$dir/cluster" > "$dir/up.log" 2>&1 || { cat "$dir/up.log"; exit 1; }
trap '"$spur" down --dir "$dir/cluster" > /dev/null 2>&1' EXIT
eval "$("$spur" env --dir "$dir/cluster")"
export PATH="$venv/bin:$PATH"
failed=0
for name in "${names[@]}"; do
  mkdir -p "$dir/$name"; script=$(ls "$here/client_$name".*); began=$(date +%s)
  case $script in *.py) run=("$venv/bin/python" "$script");; *) run=(bash "$script");; esac
  (cd "$dir/$name" && timeout $patience "${run[@]}" > log 2>&1 < /dev/null); code=$?
  case $code in 0) word=ok;; 77) word=skipped;; 124) word="timed out"; failed=1;; *) word="FAILED ($code)"; failed=1;; esac
  printf '%-18s %-12s %4ss   %s\n' "$name" "$word" $(($(date +%s) - began)) "$([ $code = 0 ] || tail -1 "$dir/$name/log" | cut -c1-120)"
done
echo "logs: $dir"
exit $failed
