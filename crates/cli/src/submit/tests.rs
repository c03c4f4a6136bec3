//! The option table, driven from outside as a user drives it; wordings and codes as a Slurm 22.05 gave them.
use model::command::Blob;
use model::{JobKind, JobSpec, Timestamp};

use super::request::Source;
use super::{Caller, Problem, Program, Request, components, read, table};
use crate::sbatch::{self, Built, Script, Submission};

fn caller(environment: &[(&str, &str)]) -> Caller {
    Caller {
        uid: 1000,
        gid: 1000,
        account: crate::users::Account { uid: 1000, name: "ada".into(), ..Default::default() }.into(),
        work_dir: "/home/ada".into(),
        host: "login".into(),
        umask: 0o022,
        now: Timestamp::from_secs(1_794_744_000),
        cluster_name: "spur".into(),
        ..Caller::default()
    }
    .with_environment(environment)
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_string).collect()
}

fn submit(arguments: &str, environment: &[(&str, &str)], script: &str) -> Result<Submission, String> {
    let fetch = |_: &sbatch::Source| {
        Ok::<_, Problem>(Script { path: "/home/ada/job.sh".into(), content: script.as_bytes().to_vec() })
    };
    match sbatch::build(&words(arguments), &caller(environment), fetch) {
        Ok(Built::Submission(submission)) => Ok(*submission),
        Ok(Built::Answer(text)) => Err(text),
        Err(problem) => Err(format!("{}={}", problem.show(Program::Sbatch), problem.code)),
    }
}

fn spec(arguments: &str) -> JobSpec {
    submit(&format!("{arguments} job.sh"), &[], "#!/bin/sh\n").unwrap_or_else(|text| panic!("{arguments}: {text}")).spec
}

/// The message and exit code for `sbatch ARGUMENTS job.sh`.
fn refused(arguments: &str, expected: &str) {
    let shown = submit(&format!("{arguments} job.sh"), &[], "#!/bin/sh\n");
    assert_eq!(shown.map(|submission| submission.spec.name), Err(expected.to_string()), "{arguments}");
}

#[test]
fn the_names_are_in_order_and_each_program_knows_a_letter_once() {
    for program in [Program::Sbatch, Program::Salloc, Program::Srun] {
        let names: Vec<&str> = table::of(program).map(|option| option.long).collect();
        assert!(names.is_sorted(), "{program:?}");
        let letters: Vec<char> = table::of(program).filter_map(|option| option.short).collect();
        for letter in &letters {
            assert_eq!(letters.iter().filter(|other| *other == letter).count(), 1, "{program:?} -{letter}");
        }
    }
}

#[test]
fn resources_of_a_task_are_named_together_and_hints_are_checked() {
    let with_licenses = spec("-n3 -L a:2 --tres-per-task=gres/gpu,license/a:2,license/b");
    assert_eq!(with_licenses.licenses.to_string(), "a:8,b:3");
    assert_eq!(with_licenses.size.gres_per_task.iter().map(|unit| unit.to_string()).collect::<Vec<_>>(), ["gpu:1"]);
    for wrong in ["cpu", "cpu:3cpu:3", "cpu::3", "license//a", "license/", "license/a::2", "gpu:1", "gres//gpu::1"] {
        let told = submit(&format!("--tres-per-task={wrong} --wrap=true"), &[], "").unwrap_err();
        assert!(told.contains("Invalid"), "{wrong}: {told}");
    }
    let size = spec("-n2 --tres-per-task=cpu=2,gres/gpu:a100=1").size;
    assert_eq!(size.cpus_per_task, Some(2));
    assert_eq!(size.gres_per_task.iter().map(ToString::to_string).collect::<Vec<_>>(), ["gpu:a100:1"]);
    for fine in
        ["--gres-flags=enforce-binding", "--mem-bind=v,map_mem:0,1", "--acctg-freq=task=30,energy=0", "-m block:cyclic"]
    {
        spec(fine);
    }
    for bb in ["bb:1", "bb/native=1G", "cpu=1,bb"] {
        refused(&format!("--tres-per-task={bb}"), "sbatch: fatal: Invalid TRES for --tres-per-task: bb\n=1");
    }
    refused("--gres-flags=x", "sbatch: error: Invalid --gres-flags specification\n=255");
    refused("--acctg-freq=task", "sbatch: error: Invalid --acctg-freq specification\n=255");
    let twice =
        "sbatch: error: unrecognized --mem-bind argument \"x\"\nsbatch: fatal: Failed to parse --mem-bind= values.\n=1";
    refused("--mem-bind=x", twice);
    refused("-m block:x", "sbatch: error: Invalid --distribution specification\n=255");
}

#[test]
fn an_option_that_is_not_carried_out_is_refused_by_name() {
    let refused_options: Vec<_> = table::of(Program::Sbatch).filter(|option| option.is_refused()).collect();
    assert!(!refused_options.is_empty());
    for option in refused_options {
        let value = if option.takes_value() { "=1" } else { "" };
        let text = format!("sbatch: error: --{} is not supported by this version of Spur\n=1", option.long);
        refused(&format!("--{}{value}", option.long), &text);
    }
}

#[test]
fn values_that_make_no_sense_are_told_as_slurm_tells_them() {
    let numeric =
        |value: &str, name: &str| format!("sbatch: error: Invalid numeric value \"{value}\" for --{name}.\n=1");
    let invalid = |name: &str| format!("sbatch: error: Invalid --{name} specification\n=255");
    let failed = |why: &str| format!("sbatch: error: Batch job submission failed: {why}\n=1");
    for value in ["0", "-1", "x", "2x"] {
        refused(&format!("-n{value}"), &numeric(value, "ntasks"));
    }
    refused("-c0", &numeric("0", "cpus-per-task"));
    refused("--ntasks-per-node=x", &numeric("x", "ntasks-per-node"));
    for value in ["x", "1:2:3:4", "1h"] {
        refused(&format!("-t {value}"), &invalid("time"));
    }
    refused("--time-min=x", &invalid("time-min"));
    for value in ["x", "-1", "1X", "1.5G"] {
        refused(&format!("--mem={value}"), &invalid("mem"));
    }
    refused("--mem-per-cpu=x", &invalid("mem-per-cpu"));
    refused("--tmp=x", &invalid("tmp"));
    refused("--mail-type=x", &invalid("mail-type"));
    refused("--open-mode=x", &invalid("open-mode"));
    refused("--exclusive=x", &invalid("exclusive"));
    refused("--kill-on-invalid-dep=x", &invalid("kill-on-invalid-dep"));
    refused("--distribution=x", &invalid("distribution"));
    for value in ["x", "USR1@x", "B:10@99999"] {
        refused(&format!("--signal={value}"), &invalid("signal"));
    }
    for value in ["x", "1-", "5-1", "1-5:0", "-1"] {
        refused(&format!("-a {value}"), &failed("Invalid job array specification"));
    }
    for value in ["x", "afterok", "afterok:", "afterok:x", "after:1+x"] {
        refused(&format!("-d {value}"), &failed("Job dependency problem"));
    }
    refused("-w n[1", &failed("Invalid node name specified"));
    refused("-N x", "sbatch: error: \"x\" is not a valid node count\n=255");
    refused("-N 1,3", "sbatch: error: \"1,3\" is not a valid node count\n=255");
    refused("-N 3-1", "sbatch: error: Maximum node count 1 is less than minimum node count 3\n=255");
    refused("-N 2-", "sbatch: error: Maximum node count -1 is less than minimum node count 2\n=255");
    refused("-w n1,n2 -N1", "sbatch: error: invalid number of nodes (-N 2-1)\n=1");
    refused("--begin=x", "Invalid time specification (pos=0): x\nsbatch: error: Invalid --begin specification\n=255");
    refused("--propagate=x", "sbatch: error: Bad rlimit name: x\nsbatch: error: --propagate=x is not valid.\n=1");
    refused("--uid=root", "sbatch: error: --uid only permitted by root user\n=255");
    let exclusive = "sbatch: fatal: --mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.\n=1";
    refused("--mem=100 --mem-per-cpu=100", exclusive);
    let hint = "Try \"sbatch --help\" for more information\n=255";
    refused("--nosuch", &format!("sbatch: unrecognized option '--nosuch'\n{hint}"));
    refused("-Z", &format!("sbatch: invalid option -- 'Z'\n{hint}"));
    refused("--parsable=x", &format!("sbatch: option '--parsable' doesn't allow an argument\n{hint}"));
    let possible = "possibilities: '--time' '--time-min'";
    refused("--tim=5", &format!("sbatch: option '--tim=5' is ambiguous; {possible}\n{hint}"));
    let possible = "possibilities: '--nodefile' '--nodelist' '--nodes'";
    refused("--nod=2", &format!("sbatch: option '--nod=2' is ambiguous; {possible}\n{hint}"));
    refused("--TIME=5", &format!("sbatch: unrecognized option '--TIME=5'\n{hint}"));
}

#[test]
fn options_fill_the_spec() {
    use model::spec::{Memory, OpenMode, Sharing, TimeLimit};
    assert_eq!((spec("-N2").size.min_nodes, spec("-N2").size.max_nodes), (2, Some(2)));
    assert_eq!((spec("-N1-3").size.min_nodes, spec("-N1-3").size.max_nodes), (1, Some(3)));
    assert_eq!((spec("").size.min_nodes, spec("").size.max_nodes), (1, None));
    assert_eq!(spec("-w n[1-2]").size.min_nodes, 2);
    assert_eq!(spec("-t 1:30").time_limit, Some(TimeLimit::Secs(120)));
    assert_eq!(spec("-t 1-").time_limit, Some(TimeLimit::Secs(86_400)));
    assert_eq!(spec("-t 0").time_limit, Some(TimeLimit::Unlimited));
    assert_eq!(spec("--mem=1G").size.memory, Memory::PerNodeMb(1024));
    assert_eq!(spec("--mem=0").size.memory, Memory::WholeNode);
    assert_eq!(spec("--mem-per-cpu=50").size.memory, Memory::PerCpuMb(50));
    assert_eq!(spec("--exclusive").size.sharing, Sharing::WholeNodes);
    assert_eq!(spec("--open-mode=append").open_mode, OpenMode::Append);
    assert_eq!(spec("-p debug,short").partitions, ["debug", "short"]);
    assert_eq!(spec("--nice").nice, 100);
    assert_eq!(spec("--nice=-5").nice, -5);
    assert_eq!(spec("-D sub").work_dir, "/home/ada/sub");
    assert_eq!(spec("-o none").stdout.as_deref(), Some("/dev/null"));
    assert_eq!(spec("-a 1-3,7%2").array.unwrap().limit, Some(2));
    assert_eq!(spec("--begin=2030-01-01T00:00:00").begin.map(|at| at.secs() / 86_400), Some(21_915));
    assert_eq!(spec("--gpus=4 -N2").size.gres[0].count, 2);
    assert_eq!(spec("--gpus-per-task=a100:1 -n3").size.gres_per_task[0].to_string(), "gpu:a100:1");
    assert_eq!(spec("-J=x").name, "=x");
    let warning = spec("--signal=B:USR1@10").warning.unwrap();
    assert_eq!((warning.signal, warning.before.secs(), warning.batch_only), (10, 10, true));
    let warning = spec("--signal=R:USR1").warning.unwrap();
    assert_eq!((warning.before.secs(), warning.batch_only, warning.overlaps_reservations), (60, false, true));
}

#[test]
fn a_list_of_hosts_names_each_node_once_and_leaves_the_network_nothing_to_choose() {
    let size = spec("-m arbitrary -w n1,n3,n1 -n 3").size;
    assert_eq!(size.nodes.iter().map(|node| node.as_str()).collect::<Vec<_>>(), ["n1", "n3"]);
    assert_eq!(size.network.topology, Some(model::topology::TopologyKind::Flat));
    let size = spec("-m block -w n1,n3 -n 3").size;
    assert_eq!(size.network.topology, None);
}

#[test]
fn arguments_win_over_the_environment_and_that_over_the_script() {
    let script = "#!/bin/sh\n#SBATCH -p from_script -J script_name --mem=1\n";
    let environment = [("SBATCH_PARTITION", "from_environment"), ("SBATCH_MEM_PER_CPU", "2")];
    let partition = |arguments: &str, environment: &[(&str, &str)]| {
        let submission = submit(arguments, environment, script).unwrap();
        (submission.spec.partitions.join(","), submission.spec.name, submission.spec.size.memory)
    };
    use model::spec::Memory::{PerCpuMb, PerNodeMb};
    assert_eq!(partition("job.sh", &[]), ("from_script".into(), "script_name".into(), PerNodeMb(1)));
    assert_eq!(partition("job.sh", &environment), ("from_environment".into(), "script_name".into(), PerCpuMb(2)));
    let from_arguments = partition("-p from_arguments --mem=3 job.sh", &environment);
    assert_eq!(from_arguments, ("from_arguments".into(), "script_name".into(), PerNodeMb(3)));
}

#[test]
fn scripts_that_cannot_run_are_refused() {
    let check = |script: &str, expected: &str| {
        let shown = submit("job.sh", &[], script).map(|submission| submission.spec.name);
        assert_eq!(shown, Err(expected.to_string()), "{script:?}");
    };
    let unlike = "sbatch: error: This does not look like a batch script.  The first\n\
                  sbatch: error: line must start with #! followed by the path to an interpreter.\n\
                  sbatch: error: For instance: #!/bin/sh\n=1";
    check("echo hi\n", unlike);
    check("", "sbatch: error: Batch script is empty!\n=1");
    check(" \n\t\n", "sbatch: error: Batch script contains only whitespace!\n=1");
    let dos = "sbatch: error: Batch script contains DOS line breaks (\\r\\n)\n\
               sbatch: error: instead of expected UNIX line breaks (\\n).\n=1";
    check("#!/bin/sh\r\n", dos);
    let null = "sbatch: error: The Slurm controller does not allow scripts that\n\
                sbatch: error: contain a NULL character '\\0'.\n=1";
    check("#!/bin/sh\n\0", null);
    check("#!/bin/sh\n#SBATCH -N 2 stray\n", "sbatch: error: Invalid directive found in batch script: stray\n=1");
}

#[test]
fn a_job_is_named_after_its_script() {
    let name = |arguments: &str| submit(arguments, &[], "#!/bin/sh\n").unwrap().spec.name;
    assert_eq!(name("job.sh a b"), "job.sh");
    assert_eq!(name("--wrap=true"), "wrap");
    assert_eq!(name("--wrap=true -J x"), "x");
    assert_eq!(submit("job.sh a b", &[], "#!/bin/sh\n").unwrap().spec.arguments, ["a", "b"]);
    let both = submit("--wrap=x job.sh", &[], "#!/bin/sh\n").map(|submission| submission.spec.name);
    assert_eq!(both, Err("sbatch: error: Script arguments not permitted with --wrap option\n=1".into()));
}

#[test]
fn content_is_named_by_its_hash() {
    let submission = submit("job.sh", &[("A", "1")], "#!/bin/sh\n").unwrap();
    let Submission { spec, blobs, .. } = &submission;
    let [Blob { id: script, content }, environment] = &blobs[..] else { panic!("two blobs go along") };
    assert_eq!(spec.kind, JobKind::Batch { script: *script });
    assert_eq!(content, b"#!/bin/sh\n");
    assert_eq!(spec.environment, environment.id);
    assert_eq!(
        environment.content,
        b"A=1\0SLURM_SUBMIT_DIR=/home/ada\0SLURM_SUBMIT_HOST=login\0SLURM_PRIO_PROCESS=0\0"
    );
    assert_eq!(submit("job.sh", &[("A", "1")], "#!/bin/sh\n").unwrap().blobs, *blobs);
}

#[test]
fn verbose_lists_what_was_given() {
    let submission = submit("--wrap=true -H", &[("SBATCH_DEBUG", "1")], "").unwrap();
    let expected = "sbatch: defined options\n\
                    sbatch: -------------------- --------------------\n\
                    sbatch: hold                : set\n\
                    sbatch: verbose             : 1\n\
                    sbatch: wrap                : true\n\
                    sbatch: -------------------- --------------------\n\
                    sbatch: end of defined options\n";
    assert_eq!(submission.talk, expected);
}

#[test]
fn every_variable_goes_through_the_option_of_its_table_line() {
    let parsed = read::arguments(Program::Srun, &words("true")).unwrap();
    let read = |environment: &[(&str, &str)]| -> Request {
        components::request(Program::Srun, std::slice::from_ref(&parsed), &caller(environment), &[], 0).unwrap()
    };
    let request = read(&[("SLURM_NTASKS", "3"), ("SLURM_NPROCS", "9"), ("SLURM_JOB_ID", "17"), ("SLURM_LABELIO", "1")]);
    assert_eq!(request.spec.size.n_tasks, Some(3));
    assert_eq!((request.step.job.map(|job| job.0), request.step.task), (Some(17), None));
    assert!(request.step.labels);
    assert_eq!(request.given["ntasks"].source, Source::Environment);
    let within = read(&[("SLURM_JOB_ID", "17_4")]).step;
    assert_eq!((within.job.map(|job| job.0), within.task), (Some(17), Some(4)));
}

#[test]
fn options_about_cores_and_gpus_fill_the_spec() {
    use model::spec::{Distribution, Memory};
    assert_eq!(spec("--delay-boot=5").delay_boot.secs(), 300);
    assert_eq!(spec("--hint=nomultithread").size.threads_per_core, Some(1));
    assert_eq!(spec("--hint=multithread").size.threads_per_core, None);
    let size = spec("-B 2:4:*").size;
    assert_eq!((size.sockets_per_node, size.cores_per_socket, size.threads_per_core), (Some(2), Some(4), None));
    assert_eq!(spec("--sockets-per-node=2 --ntasks-per-socket=3").size.tasks_per_node, Some(6));
    assert_eq!(spec("-m cyclic").size.distribution, Distribution::Cyclic);
    assert_eq!(spec("-m plane=3").size.distribution, Distribution::Plane(3));
    assert_eq!(spec("-m block:block").size.distribution, Distribution::Block);
    assert_eq!(spec("--gpus=1 --mem-per-gpu=1G").size.memory, Memory::PerGpuMb(1024));
    assert_eq!(spec("--gpus=2 --ntasks-per-gpu=3").size.n_tasks, Some(6));
    assert_eq!(spec("-N2 --gpus-per-node=2 --ntasks-per-gpu=3").size.tasks_per_node, Some(6));
    assert_eq!(spec("-n6 --ntasks-per-gpu=3").size.gres_total[0].count, 2);
    assert_eq!(spec("--gpus=4 --gpus-per-task=2").size.n_tasks, Some(2));
    // None is as good as nothing, and is shown.
    for line in ["--gpus=0", "--gpus=0 -N2", "--gpus-per-task=0 -n2", "--gpus=0 --gpus-per-node=0"] {
        let spec = spec(line);
        assert!(spec.size.gres_total.is_empty() && spec.size.gres_per_task.is_empty(), "{line}");
    }
    assert_eq!(spec("--gpus=0").tres_words.per_job, "gres:gpu:0");
    assert!(spec("--spread-job").size.spreads && spec("--use-min-nodes").size.prefers_few_nodes);
}

#[test]
fn mistakes_about_cores_and_gpus_are_told_as_slurm_tells_them() {
    let gres = "sbatch: error: Invalid generic resource (gres) specification\n=1";
    let gpus = |line: &str| {
        let size = spec(line).size;
        (size.min_nodes, size.max_nodes, size.gres.iter().map(|unit| unit.count).sum::<u32>())
    };
    assert_eq!(gpus("--gpus=4 --gpus-per-node=2 -N2"), (2, Some(2), 2));
    assert_eq!(gpus("--gpus=4 --gpus-per-node=2"), (2, Some(2), 2));
    let told = |line: &str, why: &str| refused(line, &format!("sbatch: error: {why}\n{gres}"));
    let invalid = "Failed to validate job spec";
    told("--gres=gpu:2 --gpus=3", &format!("{invalid}, --gpus is not multiple of --gres=gpu/--gpus-per-node"));
    told("--gres=gpu:2 --gpus=1", "Failed to ensure --gpus >= --gres=gpu/--gpus-per-node >= --gpus-per-socket");
    let nodes = "required nodes (2) doesn't fall between min_nodes (1) and max_nodes (1) boundaries.";
    told("--gres=gpu:2 --gpus=4 -N1", &format!("{invalid}. Based on --gpu and --gres=gpu/--gpus-per-node {nodes}"));
    let tasks = "Based on --gpus and --gpus-per-task number of requested tasks differ from -n/--ntasks.";
    told("--gpus-per-task=1 -n2 --gpus=1", &format!("{invalid}. {tasks}"));
    told("--gpus=3 --gpus-per-task=2", &format!("{invalid}, --gpus not multiple of --gpus-per-task"));
    told("--gpus=1 -N2", &format!("{invalid}, --gpus < -N"));
    told("--gpus-per-socket=2", "--gpus-per-socket option requires --sockets-per-node specification");
    let sockets = "required number of sockets differ from --sockets-per-node.";
    let sockets = format!("{invalid}. Based on --gres=gpu/--gpus-per-node and --gpus-per-socket {sockets}");
    told("--gres=gpu:2 --gpus-per-socket=1 --sockets-per-node=1", &sockets);
    told("--gpus-per-task=1 --cpus-per-gpu=1 -c2 -n1", "--cpus-per-gpu is mutually exclusive with --cpus-per-task");
    let each = "requested number of tasks per node differ from --ntasks-per-node.";
    let each = format!("{invalid}. Based on --gres=gpu/--gpus-per-node and --gpus-per-task {each}");
    told("--gpus-per-task=1 --gpus-per-node=2 --ntasks-per-node=1", &each);
    assert_eq!(spec("--gpus-per-socket=2 --sockets-per-node=2").size.gres[0].count, 4);
    assert_eq!(gpus("--gpus-per-node=1 --gres=gpu:2").2, 2);
    assert_eq!(spec("--gpus-per-task=1 -N2").size.gres_per_task[0].count, 1);
    // What does not divide evenly is shared out when the nodes are chosen.
    let size = spec("--gpus=3 -N2").size;
    assert_eq!((size.gres.len(), size.gres_total[0].count), (0, 3));
    assert_eq!(spec("--gpus=a100:3").size.gres_total[0].to_string(), "gpu:a100:3");
    assert_eq!(spec("--gpus-per-node=2 --gpus-per-task=1").size.tasks_per_node, Some(2));
    refused("--hint=x", "sbatch: error: unrecognized --hint argument \"x\", see --hint=help\n=1");
    refused("-B x", "sbatch: error: Invalid numeric value \"x\" for first arg of -B.\n=1");
    refused("--cores-per-socket=x", "sbatch: error: Invalid numeric value \"x\" for --cores-per-socket.\n=1");
    let no_plane = "sbatch: error: Invalid plane size or size not specified\n";
    refused("-m plane", &format!("{no_plane}sbatch: error: Invalid --distribution specification\n=255"));
    let no_gpu = "sbatch: error: Requested mem_per_tres=gres:gpu:100 but did not request any GPU.\n";
    refused("--mem-per-gpu=100", &format!("{no_gpu}{gres}"));
    let neither = "sbatch: error: gres_job_state_validate: --ntasks-per-tres needs either a GRES GPU specification or a node/ntask specification\n";
    refused("--ntasks-per-gpu=2", &format!("{neither}{gres}"));
    for other in ["ntasks-per-node", "gpus-per-task", "gpus-per-socket"] {
        let exclusive = "is mutually exclusive with --ntasks-per-gpu and SLURM_NTASKS_PER_GPU";
        refused(&format!("--ntasks-per-gpu=2 --{other}=2 -n2"), &format!("sbatch: fatal: --{other} {exclusive}\n=1"));
    }
    refused("--export-file=/nosuch", "sbatch: error: Could not open user environment file /nosuch\n=1");
    refused("--get-user-env=x", "sbatch: error: Invalid --get-user-env specification\n=255");
    let missing = "sbatch: error: slurm_allocate_resources error opening file /nosuch, No such file or directory\n";
    refused("-w /nosuch", &format!("{missing}=1"));
    refused("-F /nosuch", &format!("{missing}sbatch: error: Invalid --nodefile node file\n=255"));
    refused("--gid=root", "sbatch: error: --gid only permitted by root user\n=255");
}

#[test]
fn a_job_finds_its_options_as_variables_and_not_those_of_an_outer_job() {
    let environment = |arguments: &str, outer: &[(&str, &str)]| {
        let submission = submit(&format!("{arguments} job.sh"), outer, "#!/bin/sh\n").unwrap();
        let text = String::from_utf8(submission.blobs[1].content.clone()).unwrap();
        let is_of_caller = |entry: &str| entry.starts_with("SLURM_SUBMIT_") || entry.starts_with("SLURM_PRIO_PROCESS=");
        let entries = text.split_terminator('\0').filter(|entry| !is_of_caller(entry));
        entries.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(environment("--gpus=2", &[("A", "1"), ("SLURM_HINT", "multithread")]), "A=1 SLURM_GPUS=2");
    let hinted = |hint: &str| environment(&format!("--hint={hint}"), &[]);
    assert_eq!(hinted("memory_bound"), "SLURM_HINT=memory_bound SLURM_THREADS_PER_CORE=1");
    assert_eq!(hinted("multithread"), "SLURM_HINT=multithread");
    assert_eq!(hinted("nomultithread --ntasks-per-core=2"), "SLURM_HINT=nomultithread SLURM_NTASKS_PER_CORE=2");
    let file = std::env::temp_dir().join(format!("spur-export-{}", std::process::id()));
    std::fs::write(&file, "B=2\0C=x=y\0").unwrap();
    let from_file = environment(&format!("--export-file={}", file.display()), &[("A", "1")]);
    std::fs::remove_file(file).unwrap();
    assert_eq!(from_file, "B=2 C=x=y");
    // What is told is what was understood.
    assert_eq!(environment("--profile=task,energy", &[]), "SLURM_PROFILE=Energy,Task");
    assert_eq!(environment("--cpu-freq=low-high:ondemand", &[]), "SLURM_CPU_FREQ_REQ=Low-High:OnDemand");
    assert_eq!(environment("--ntasks-per-tres=2 --gpus=1", &[]), "SLURM_GPUS=1 SLURM_NTASKS_PER_TRES=2");
}

#[test]
fn options_of_plugins_are_read_as_a_slurm_without_them_reads_them() {
    let kept = spec("--batch=a|b --mcs-label=secret --power=level,x --reboot");
    assert_eq!(
        (kept.batch_features.as_str(), kept.mcs_label.as_str(), kept.power_words.as_str()),
        ("a|b", "secret", "LEVEL")
    );
    assert!(kept.wants_reboot && kept.size.wants_whole_nodes());
    assert_eq!(spec("--ntasks-per-tres=2 --gpus=2").size.n_tasks, Some(4));
    let talk = submit("--power=x job.sh", &[], "#!/bin/sh\n").unwrap().talk;
    assert_eq!(talk, "sbatch: error: Ignoring unrecognized power option (x)\n");
    refused("--profile=x", "sbatch: error: invalid --profile=x option\n=255");
    refused("--ntasks-per-tres=x", "sbatch: error: Invalid numeric value \"x\" for --ntasks-per-tres.\n=1");
    let frequency =
        "sbatch: error: unrecognized --cpu-freq argument \"x\"\nsbatch: error: Invalid --cpu-freq argument\n=255";
    refused("--cpu-freq=x", frequency);
}

#[test]
fn what_a_file_of_directives_says_is_put_into_the_script() {
    let file = std::env::temp_dir().join(format!("spur-directives-{}", std::process::id()));
    std::fs::write(&file, "#DW jobdw capacity=1GiB\necho first").unwrap();
    let script = |text: &str| {
        let submission = submit(&format!("--bbf={} job.sh", file.display()), &[], text).unwrap();
        assert_eq!(submission.spec.burst_buffer_file, "");
        String::from_utf8(submission.blobs[0].content.to_vec()).unwrap()
    };
    let found = (script("#!/bin/sh\necho second\n"), script("#!/bin/sh"));
    std::fs::remove_file(&file).unwrap();
    assert_eq!(found.0, "#!/bin/sh\n#DW jobdw capacity=1GiB\necho first\necho second\n");
    assert_eq!(found.1, "#!/bin/sh\n#DW jobdw capacity=1GiB\necho first\n");
}

#[test]
fn root_submits_for_others() {
    let caller = Caller { uid: 0, gid: 0, ..caller(&[]) };
    let fetch = |_: &sbatch::Source| Ok::<_, Problem>(Script { content: b"#!/bin/sh\n".to_vec(), ..Script::default() });
    let Ok(Built::Submission(submission)) = sbatch::build(&words("--uid=nobody --gid=0 job.sh"), &caller, fetch) else {
        panic!("it is submitted");
    };
    let nobody = crate::users::uid_of("nobody").unwrap();
    assert_eq!((submission.spec.uid, submission.spec.gid, submission.spec.user.as_str()), (nobody, 0, "nobody"));
}
