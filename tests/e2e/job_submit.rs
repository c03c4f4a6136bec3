//! A site's job_submit.lua: what it changes, refuses and says, and what becomes of a bad one.
use std::fs;

use crate::cluster::{Cluster, Folder};

const SCRIPT: &str = r##"
function slurm_job_submit(job, partitions, uid)
    if job.name == "refused" then
        slurm.log_user("not today,\nuser %d", uid)
        slurm.user_msg("nor tomorrow")
        return slurm.ERROR
    end
    if job.name == "late" then return slurm.ESLURM_INVALID_TIME_LIMIT end
    if job.name == "broken" then return job.nothing.there end
    if job.name == "slow" then while true do end end
    if job.name == "changed" then
        slurm.log_user("You asked for %s of %s", job.num_tasks, partitions.main.name)
        job.comment = "by " .. job.user_name
        job.admin_comment = "seen"
        if job.time_limit == slurm.NO_VAL then job.time_limit = 7 end
        job.environment.FROM_SITE = "it is " .. job.environment.HOME
        job.script = job.script:gsub("echo before", "echo after")
    end
    if job.name == "count" then
        local n = 0
        for _, one in pairs(slurm.jobs) do n = n + (one.name == "changed" and 1 or 0) end
        job.comment = "jobs " .. n
    end
    return slurm.SUCCESS
end

function slurm_job_modify(wanted, job, partitions, uid)
    if wanted.comment == "no" then return slurm.ERROR end
    if wanted.comment == "yes" then wanted.comment = job.name .. " was changed" end
    return slurm.SUCCESS
end

return slurm.SUCCESS
"##;

fn site(plugins: &str) -> (Cluster, Folder) {
    let dir = Folder::new();
    let script = dir.join("job_submit.lua");
    fs::write(&script, SCRIPT).unwrap();
    let plugins = plugins.replace("lua", &script.display().to_string());
    let cluster = Cluster::configured(&format!(
        "[[nodes]]\nnames = \"n[1-2]\"\ncpus = 4\nmemory_mb = 1000\n[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\n\
         default = true\n[[partitions]]\nname = \"side\"\nnodes = \"n2\"\n\
         [hooks]\njob_submit = [{plugins}]\njob_submit_timeout = 10\n"
    ));
    (cluster, dir)
}

#[test]
fn a_script_changes_refuses_and_speaks() {
    let (cluster, dir) = site("\"lua\"");
    let script = dir.join("job_submit.lua");
    let refused = cluster.run("sbatch -J refused --wrap true");
    let uid = cluster.ok("id -u");
    let said = "sbatch: error: not today,\nsbatch: error: user UID\nsbatch: error: nor tomorrow\n\
                sbatch: error: Batch job submission failed: Unspecified error";
    assert_eq!((refused.err.trim(), refused.code), (said.replace("UID", &uid).as_str(), 1));
    // The messages of a script that let it pass stand before another's refusal; components are told apart.
    let elsewhere = cluster.run("sbatch -J changed -n1 -p nosuch,main --wrap true").err;
    let said = "sbatch: error: You asked for 1 of main\nsbatch: error: invalid partition specified: nosuch\n\
                sbatch: error: Batch job submission failed: Invalid partition name specified";
    assert_eq!(elsewhere.trim(), said);
    let parts = cluster.run("sbatch -J changed -n1 : -J refused -n2 --wrap true").err;
    assert!(parts.starts_with("sbatch: error: 0: You asked for 1 of main\nsbatch: error: 1: not today,"), "{parts}");
    let late = cluster.run("srun -J late true");
    let said = "srun: error: Unable to allocate resources: \
                Requested time limit is invalid (missing or exceeds some limit)";
    assert_eq!((late.err.trim(), late.code), (said, 1));

    let changed = cluster.run("sbatch -n2 -J changed -o out --wrap 'echo before; echo $FROM_SITE'");
    assert_eq!(changed.err.trim(), "sbatch: You asked for 2 of main");
    let job = changed.out.trim().rsplit(' ').next().unwrap().to_owned();
    cluster.wait_state(&job, "COMPLETED");
    let home = cluster.ok("echo $HOME");
    assert_eq!(cluster.file("out"), format!("after\nit is {home}\n"));
    let shown = cluster.ok(&format!("scontrol show job {job}"));
    let user = cluster.ok("id -un");
    for part in [format!("Comment=by {user}"), "AdminComment=seen".into(), "TimeLimit=00:07:00".into()] {
        assert!(shown.contains(&part), "{part}: {shown}");
    }
    cluster.ok("sbatch -H -J count --wrap true");
    assert_eq!(cluster.ok("squeue -h -n count -o %k"), "jobs 1");

    let held = cluster.ok("squeue -h -n count -o %i");
    let no = cluster.run(&format!("scontrol update job {held} comment=no"));
    assert_eq!((no.err.trim(), no.code), (format!("Unspecified error for job {held}").as_str(), 1));
    cluster.ok(&format!("scontrol update job {held} comment=yes"));
    assert_eq!(cluster.ok("squeue -h -n count -o %k"), "count was changed");

    // A fault in the script is the site's, not the user's; one without end is nobody's to wait for.
    cluster.ok("sbatch -H -J broken --wrap true");
    let slow = cluster.run("sbatch -J slow --wrap true");
    assert!(slow.err.contains("job_submit.lua: it took longer than 10 seconds"), "{slow:?}");

    // What does not load is not used.
    fs::write(&script, "this is no Lua").unwrap();
    assert!(cluster.run("sbatch -J refused --wrap true").err.contains("nor tomorrow"));
    assert!(cluster.logs().contains("the script as it was before goes on"));
    fs::write(&script, "function slurm_job_submit() end function slurm_job_modify() end").unwrap();
    cluster.ok("sbatch -H -J refused --wrap true");
}

#[test]
fn a_site_may_want_time_limits_and_use_all_partitions() {
    let (cluster, _) = site("\"require_timelimit\", \"all_partitions\"");
    let refused = cluster.run("sbatch --wrap true");
    let said = "sbatch: error: Batch job submission failed: Time limit specification required, but not provided";
    assert_eq!((refused.err.trim(), refused.code), (said, 1));
    let job = cluster.sbatch("-H -t5 --wrap true");
    assert_eq!(cluster.ok(&format!("squeue -h -j {job} -o %P")), "main,side");
    let job = cluster.sbatch("-H -t5 -p side --wrap true");
    assert_eq!(cluster.ok(&format!("squeue -h -j {job} -o %P")), "side");
}
