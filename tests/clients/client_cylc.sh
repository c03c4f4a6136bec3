# cylc: a workflow whose tasks are jobs that report back.
# packages: cylc-flow
set -e
export CYLC_CONF_PATH=$PWD/conf HOME=$PWD/home
mkdir -p conf home flow
cat > conf/global.cylc <<'S'
[platforms]
    [[spur]]
        hosts = localhost
        job runner = slurm
        install target = localhost
        communication method = poll
        submission polling intervals = PT3S
        execution polling intervals = PT3S
S
cat > flow/flow.cylc <<S
[scheduler]
    [[events]]
        stall timeout = PT0S
        abort on stall timeout = True
[scheduling]
    [[graph]]
        R1 = one => two
[runtime]
    [[root]]
        platform = spur
        init-script = export PATH=$PATH HOME=$PWD/home
        [[[directives]]]
            --partition = main
            --mem = 500
    [[one]]
        script = echo 1 > $PWD/one
    [[two]]
        script = cat $PWD/one $PWD/one > $PWD/two
S
timeout 200 cylc vip --no-detach --no-run-name ./flow
[ "$(paste -sd, two)" = 1,1 ]
