#!/bin/bash
# Real clients on a `spur up` cluster: installs each into an environment of its own, runs its script, and prints a table.
#   tests/clients/run.sh [--venvs DIR] [--spur BINARY] [--patience SECONDS] [NAME…]
# Not part of `cargo test`: it installs packages from the network (what a script needs is in its line `# packages:`; what is not
# from PyPI is skipped where it is missing). `uv` is used if it is there, else pip.
here=$(cd "$(dirname "$0")" && pwd)
venvs=${TMPDIR:-/tmp}/spur-clients-venvs spur=${SPUR:-$here/../../target/debug/spur} patience=240
while [[ $1 == --* ]]; do
  case $1 in --venvs) venvs=$2;; --spur) spur=$2;; --patience) patience=$2;; *) echo "what is $1?" >&2; exit 2;; esac
  shift 2
done
names=("$@"); [ ${#names[@]} = 0 ] && names=($(cd "$here" && ls client_* | sed 's/client_//; s/\..*//'))
dir=$(mktemp -d "${TMPDIR:-/tmp}/spur-clients-XXXXXX")
"$spur" up --nodes 2 --cpus 8 --memory 8G --dir "$dir/cluster" > "$dir/up.log" 2>&1 || { cat "$dir/up.log"; exit 1; }
trap '"$spur" down --dir "$dir/cluster" > /dev/null 2>&1' EXIT
eval "$("$spur" env --dir "$dir/cluster")"
# Clients ask for them; a container's shell may not have them.
export USER=${USER:-$(id -un)} LOGNAME=${LOGNAME:-$(id -un)}
plain=$PATH

# The environment with a script's packages.
install() {
  local venv=$venvs/$1; shift
  if command -v uv > /dev/null; then
    [ -x "$venv/bin/python" ] || uv venv -q "$venv" || return 1
    uv pip install -q -p "$venv/bin/python" "$@"
  else
    [ -x "$venv/bin/python" ] || python3 -m venv "$venv" || return 1
    "$venv/bin/pip" install -q "$@"
  fi
}

failed=0
for name in "${names[@]}"; do
  mkdir -p "$dir/$name"; script=$(ls "$here/client_$name".*) || exit 2
  packages=$(sed -n '1,4s/^# packages: *//p' "$script") code=0
  export PATH=$plain
  if [ -n "$packages" ]; then
    # shellcheck disable=SC2086
    install "$name" $packages > "$dir/$name.log" 2>&1 || code=install
    export PATH=$venvs/$name/bin:$plain
  fi
  began=$(date +%s)
  if [ "$code" = 0 ]; then
    case $script in *.py) run=(python "$script");; *) run=(bash "$script");; esac
    (cd "$dir/$name" && timeout "$patience" "${run[@]}" >> "$dir/$name.log" 2>&1 < /dev/null); code=$?
  fi
  case $code in
    0) word=ok;; 77) word=skipped;; 124) word="timed out"; failed=1;; install) word="not installed"; failed=1;; *) word="FAILED ($code)"; failed=1;;
  esac
  printf '%-18s %-13s %4ss   %s\n' "$name" "$word" $(($(date +%s) - began)) "$([ "$code" = 0 ] || tail -1 "$dir/$name.log" | cut -c1-120)"
  # What a client has left behind must not be in the next one's way.
  scancel -Q -u "$(id -un)" > /dev/null 2>&1
done
echo "logs: $dir"
exit $failed
