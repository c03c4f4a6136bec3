//! Golden text: the oracle's, wherever its values can be had here.
use super::*;
use crate::fixture;
use model::request::JobsPage;

fn page() -> JobsPage {
    JobsPage { jobs: fixture::queue(), now: fixture::clock().now(), ..JobsPage::default() }
}

fn job(id: &str, style: Style) -> Reply {
    show::jobs(Some(id), &page(), &fixture::config(), &fixture::clock(), style, None)
}

const LINES: Style = Style { one_line: false, details: false };

#[test]
fn a_job_is_shown_line_by_line() {
    let expected = "JobId=496 JobName=running
   UserId=root(0) GroupId=root(0) MCS_label=N/A
   Priority=4294901327 Nice=0 Account=(null) QOS=(null)
   JobState=RUNNING Reason=None Dependency=(null)
   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0
   RunTime=00:00:05 TimeLimit=01:00:00 TimeMin=N/A
   SubmitTime=2026-11-15T22:01:07 EligibleTime=2026-11-15T22:01:07
   AccrueTime=2026-11-15T22:01:07
   StartTime=2026-11-15T22:01:07 EndTime=2026-11-15T23:01:07 Deadline=N/A
   SuspendTime=None SecsPreSuspend=0 LastSchedEval=2026-11-15T22:01:07 Scheduler=Main
   Partition=debug AllocNode:Sid=localhost:0
   ReqNodeList=(null) ExcNodeList=(null)
   NodeList=n1
   BatchHost=n1
   NumNodes=1 NumCPUs=1 NumTasks=1 CPUs/Task=1 ReqB:S:C:T=0:0:*:*
   TRES=cpu=1,mem=100M,node=1,billing=1
   Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=*
   MinCPUsNode=1 MinMemoryCPU=100M MinTmpDiskNode=0
   Features=(null) DelayBoot=00:00:00
   OverSubscribe=OK Contiguous=0 Licenses=(null) Network=(null)
   Command=/work/oracle/w/job.sh one two
   WorkDir=/work/oracle/w
   Comment=a comment 
   StdErr=/work/oracle/w/err.496
   StdIn=/dev/null
   StdOut=/work/oracle/w/out.496
   Power=
   

";
    assert_eq!(job("496", LINES).out, expected);
    let one_line = job("496", Style { one_line: true, ..LINES }).out;
    assert_eq!(one_line, expected.trim_end_matches('\n').replace("\n   ", " ") + "\n");
    let details = job("497", Style { details: true, ..LINES }).out;
    assert!(details.contains("   DerivedExitCode=0:0\n   RunTime="));
    assert!(details.contains(
        "   JOB_GRES=(null)\n     Nodes=n1 CPU_IDs=0-6 Mem=700 GRES=\n     Nodes=n2 CPU_IDs=0-3 Mem=400 GRES=\n   MinCPUsNode=2"
    ));
}

#[test]
fn what_comes_with_a_gpu_by_default_is_shown_beside_what_was_asked_for() {
    let mut page = page();
    page.jobs.truncate(1);
    let mut spec = (*page.jobs[0].spec).clone();
    spec.size.gres = model::gres::parse_list("gpu:2").unwrap();
    (spec.size.cpus_per_gpu, spec.tres_words.cpus_by_default) = (Some(3), true);
    page.jobs[0].spec = std::sync::Arc::new(spec);
    let shown = show::jobs(None, &page, &fixture::config(), &fixture::clock(), LINES, None).out;
    assert!(shown.contains("CpusPerTres=gpu:3\n") && shown.contains("TresPerNode=gres:gpu:2\n"), "{shown}");
}

#[test]
fn arrays_and_what_is_not_there() {
    let first = |id: &str| job(id, LINES).out.lines().next().map(str::to_string);
    assert_eq!(first("499").unwrap(), "JobId=499 ArrayJobId=499 ArrayTaskId=3-6%2 ArrayTaskThrottle=2 JobName=runarr");
    assert_eq!(first("499_4").unwrap(), "JobId=499 ArrayJobId=499 ArrayTaskId=4 ArrayTaskThrottle=2 JobName=runarr");
    assert_eq!(first("499_1").unwrap(), "JobId=521 ArrayJobId=499 ArrayTaskId=1 JobName=runarr");
    assert_eq!(job("499", LINES).out.matches("JobId=").count(), 6);
    assert_eq!(job("499_99", LINES), Reply { code: 1, ..Reply::text("Job 499_99 not found\n".into()) });
    assert_eq!(show::job_request(Some("x")).unwrap_err(), "scontrol_print_job error: Invalid job id specified");
    let unknown = JobsPage { unknown: vec![model::JobId(9)], ..JobsPage::default() };
    let reply = show::jobs(Some("9"), &unknown, &fixture::config(), &fixture::clock(), LINES, None);
    assert_eq!(reply, Reply::failed("slurm_load_jobs error: Invalid job id specified"));
    let none = show::jobs(None, &JobsPage::default(), &fixture::config(), &fixture::clock(), LINES, None);
    assert_eq!(none.out, "No jobs in the system\n");
}

#[test]
fn nodes_and_partitions_are_shown_as_slurm_shows_them() {
    let nodes = fixture::mixed_nodes();
    let show = |name: &str| show::nodes(Some(name), &nodes, &fixture::config(), &fixture::clock(), LINES, None);
    assert_eq!(
        show("n3").out,
        "NodeName=n3 Arch=x86_64 CoresPerSocket=1 
   CPUAlloc=2 CPUEfctv=8 CPUTot=8 CPULoad=N/A
   AvailableFeatures=fast,amd
   ActiveFeatures=fast,amd
   Gres=(null)
   NodeAddr=127.0.0.1 NodeHostName=n3 Port=0 Version=22.05.8
   OS=Linux 6.18.44 
   RealMemory=4000 AllocMem=200 FreeMem=N/A Sockets=8 Boards=1
   State=MIXED+DRAIN ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   Partitions=debug,down,limited,rootonly 
   BootTime=2026-11-15T21:33:24 SlurmdStartTime=2026-11-15T21:42:27
   LastBusyTime=2026-11-15T22:01:07
   CfgTRES=cpu=8,mem=4000M,billing=8
   AllocTRES=cpu=2,mem=200M
   CapWatts=n/a
   CurrentWatts=0 AveWatts=0
   ExtSensorsJoules=n/s ExtSensorsWatts=0 ExtSensorsTemp=n/s
   Reason=disk is failing badly, replace [root@2026-11-15T22:02:12]

"
    );
    assert_eq!(show("nosuch"), Reply { code: 1, ..Reply::text("Node nosuch not found\n".into()) });
    assert_eq!(show("n[1-2]").out.matches("NodeName=").count(), 2);
    let partition = show::partitions(Some("short"), &nodes, &fixture::config(), LINES, false, None);
    assert_eq!(
        partition.out,
        "PartitionName=short
   AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL
   AllocNodes=ALL Default=NO QoS=N/A
   DefaultTime=00:05:00 DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO
   MaxNodes=UNLIMITED MaxTime=00:10:00 MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED
   Nodes=n[1-2]
   PriorityJobFactor=1 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=NO
   OverTimeLimit=NONE PreemptMode=OFF
   State=UP TotalCPUs=16 TotalNodes=2 SelectTypeParameters=NONE
   JobDefaults=(null)
   DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED
   TRES=cpu=16,mem=8000M,node=2,billing=16

"
    );
    let mut weighed = fixture::config();
    weighed.partitions.iter_mut().for_each(|partition| partition.billing_weights = "cpu=1.0,mem=0.25G".into());
    let shown = show::partitions(Some("short"), &nodes, &weighed, LINES, false, None).out;
    assert!(shown.ends_with("   TRESBillingWeights=cpu=1.0,mem=0.25G\n\n"), "{shown}");
    let unknown = show::partitions(Some("x"), &nodes, &fixture::config(), LINES, false, None);
    assert_eq!(unknown, Reply { code: 1, ..Reply::text("Partition x not found\n".into()) });
}

#[test]
fn what_of_a_node_is_not_for_jobs_has_a_line_and_kinds_of_a_device_are_one_sum() {
    let mut nodes = fixture::mixed_nodes();
    let node = nodes.iter_mut().find(|view| view.node.name.as_str() == "n3").unwrap();
    assert!(node.node.config.keep_cores(2) && node.node.config.keep_memory(1000));
    let gpus = |kind: &str| model::gres::Gres { name: "gpu".into(), kind: kind.into(), count: 2, ..Default::default() };
    node.node.config.gres = vec![gpus("a"), gpus("b")];
    let shown = show::nodes(Some("n3"), &nodes, &fixture::config(), &fixture::clock(), LINES, None).out;
    assert!(shown.contains("CPUEfctv=6 CPUTot=8"), "{shown}");
    assert!(shown.contains("RealMemory=4000 "), "{shown}");
    assert!(shown.contains("Boards=1\n   CoreSpecCount=2 CPUSpecList=6-7 MemSpecLimit=1000\n   State="), "{shown}");
    assert!(shown.contains("CfgTRES=cpu=6,mem=3000M,billing=8,gres/gpu=4\n"), "{shown}");
}

#[test]
fn a_step_counts_its_devices_with_and_without_their_kind() {
    let units = model::CpuSet::first(2);
    let gpus = model::gres::GresUnits { name: "gpu".into(), kind: "tesla".into(), units, ..Default::default() };
    let shares = vec![model::resources::NodeShare { node: "n1".into(), gres: vec![gpus], ..Default::default() }];
    let mut page = page();
    let job = page.jobs.iter().find(|job| job.id == model::JobId(496)).expect("it is in the queue");
    let id = model::StepId::Number(0);
    page.steps = vec![model::Step { job: job.id, attempt: job.attempt, id, shares, ..Default::default() }];
    let shown = show::steps(Some("496"), &page, &fixture::config(), &fixture::clock(), LINES, None).out;
    assert!(shown.contains(",gres/gpu=2,gres/gpu:tesla=2\n"), "{shown}");
}

#[test]
fn steps_are_shown() {
    let steps = show::steps(Some("496"), &page(), &fixture::config(), &fixture::clock(), LINES, None);
    assert_eq!(
        steps.out,
        "StepId=496.batch UserId=0 StartTime=2026-11-15T22:01:07 TimeLimit=UNLIMITED
   State=RUNNING Partition=debug NodeList=n1
   Nodes=1 CPUs=0 Tasks=1 Name=batch Network=(null)
   TRES=(null)
   ResvPorts=(null)
   CPUFreqReq=Default
   SrunHost:Pid=(null):0

"
    );
    let missing = show::steps(Some("496.9"), &page(), &fixture::config(), &fixture::clock(), LINES, None);
    assert_eq!(missing, Reply { code: 1, ..Reply::text("Job step 496.9 not found\n".into()) });
    let newest = Some(crate::json::Shape::default());
    let document = show::steps(Some("496"), &page(), &fixture::config(), &fixture::clock(), LINES, newest).out;
    for part in ["\"steps\": [", "\"id\": \"496.batch\"", "\"state\": [\n        \"RUNNING\"", "\"number_tasks\": 1"] {
        assert!(document.contains(part), "{part} in {document}");
    }
}

#[test]
fn lines_are_split_outside_quotes() {
    assert_eq!(words("update node=n1 reason=\"two words\"  x"), ["update", "node=n1", "reason=two words", "x"]);
}
