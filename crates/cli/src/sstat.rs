//! `sstat`: what running steps use, measured at the moment of asking.
use std::collections::BTreeMap;

use model::ask::LiveRun;
use model::request::JobFilter;
use model::usage::Spread;
use model::{JobId, StepId, Usage, hostlist};

use crate::context::block_on;
use crate::getopt::{Flag, Operands, Value, flag, parse};
use crate::live;
use crate::output::print;
use crate::trouble::{self, Trouble};
use crate::version;

pub const FLAGS: &[Flag] = &[
    flag("allsteps", Some('a'), Value::None),
    flag("format", Some('o'), Value::Required),
    flag("fields", None, Value::Required),
    flag("help", Some('h'), Value::None),
    flag("helpformat", Some('e'), Value::None),
    flag("jobs", Some('j'), Value::Required),
    flag("noconvert", None, Value::None),
    flag("noheader", Some('n'), Value::None),
    flag("parsable", Some('p'), Value::None),
    flag("parsable2", Some('P'), Value::None),
    flag("pidformat", Some('i'), Value::None),
    flag("usage", None, Value::None),
    flag("verbose", Some('v'), Value::None),
    flag("version", Some('V'), Value::None),
];

pub const HELP: &str = "\
sstat [<OPTION>] -j <job(.step)>
    Valid <OPTION> values are:
  -a, --allsteps      all running steps of the jobs
  -e, --helpformat    the fields that -o takes
  -i, --pidformat     step, node and process ids only
  -j, --jobs:         job(.step),job(.step)...
  -n, --noheader      no header
      --noconvert     numbers as they are, without units
  -o, --format        comma separated fields, each perhaps with %width
  -p, --parsable      separated by '|', with one at the end
  -P, --parsable2     separated by '|'
  -v, --verbose
  -V, --version
";

/// One step, added up over its nodes.
struct Row {
    name: String,
    usage: Usage,
    nodes: Vec<String>,
    pids: Vec<String>,
}

/// How numbers are written.
#[derive(Clone, Copy)]
struct Units {
    convert: bool,
}

type Show = fn(&Row, Units) -> String;

struct Field {
    name: &'static str,
    /// Negative is to the left.
    width: i32,
    show: Show,
}

const fn field(name: &'static str, width: i32, show: Show) -> Field {
    Field { name, width, show }
}

fn nothing(_: &Row, _: Units) -> String {
    String::new()
}

fn zero(_: &Row, _: Units) -> String {
    "0".into()
}

/// In the order of `--helpformat`.
const FIELDS: &[Field] = &[
    field("AveCPU", 10, |row, _| time(row.usage.cpu_micros.average())),
    field("AveCPUFreq", 10, zero),
    field("AveDiskRead", 12, |row, units| size(row.usage.read_bytes.average(), units)),
    field("AveDiskWrite", 12, |row, units| size(row.usage.written_bytes.average(), units)),
    field("AvePages", 10, |row, _| row.usage.page_faults.average().to_string()),
    field("AveRSS", 10, |row, units| size(row.usage.rss_bytes.average(), units)),
    field("AveVMSize", 10, |row, units| size(row.usage.vsize_bytes.average(), units)),
    field("ConsumedEnergy", 14, zero),
    field("ConsumedEnergyRaw", 17, zero),
    field("JobID", -12, |row, _| row.name.clone()),
    field("MaxDiskRead", 12, |row, units| size(row.usage.read_bytes.max, units)),
    field("MaxDiskReadNode", 15, |row, _| row.usage.read_bytes.max_node.to_string()),
    field("MaxDiskReadTask", 15, |row, _| row.usage.read_bytes.max_task.to_string()),
    field("MaxDiskWrite", 12, |row, units| size(row.usage.written_bytes.max, units)),
    field("MaxDiskWriteNode", 16, |row, _| row.usage.written_bytes.max_node.to_string()),
    field("MaxDiskWriteTask", 16, |row, _| row.usage.written_bytes.max_task.to_string()),
    field("MaxPages", 8, |row, _| row.usage.page_faults.max.to_string()),
    field("MaxPagesNode", 12, |row, _| row.usage.page_faults.max_node.to_string()),
    field("MaxPagesTask", 14, |row, _| row.usage.page_faults.max_task.to_string()),
    field("MaxRSS", 10, |row, units| size(row.usage.rss_bytes.max, units)),
    field("MaxRSSNode", 10, |row, _| row.usage.rss_bytes.max_node.to_string()),
    field("MaxRSSTask", 10, |row, _| row.usage.rss_bytes.max_task.to_string()),
    field("MaxVMSize", 10, |row, units| size(row.usage.vsize_bytes.max, units)),
    field("MaxVMSizeNode", 14, |row, _| row.usage.vsize_bytes.max_node.to_string()),
    field("MaxVMSizeTask", 14, |row, _| row.usage.vsize_bytes.max_task.to_string()),
    field("MinCPU", 10, |row, _| time(row.usage.cpu_micros.min)),
    field("MinCPUNode", 10, |row, _| row.usage.cpu_micros.min_node.to_string()),
    field("MinCPUTask", 10, |row, _| row.usage.cpu_micros.min_task.to_string()),
    field("Nodelist", -20, |row, _| hostlist::compress(row.nodes.iter().map(String::as_str))),
    field("NTasks", 8, |row, _| row.usage.n_tasks.to_string()),
    field("Pids", -20, |row, _| row.pids.join(",")),
    field("ReqCPUFreq", 13, zero),
    field("ReqCPUFreqMin", 13, zero),
    field("ReqCPUFreqMax", 13, zero),
    field("ReqCPUFreqGov", 13, zero),
    field("TRESUsageInAve", 14, |row, units| tres(row, units, |spread| spread.average().to_string(), IN)),
    field("TRESUsageInMax", 14, |row, units| tres(row, units, |spread| spread.max.to_string(), IN)),
    field("TRESUsageInMaxNode", 18, |row, units| tres(row, units, |spread| spread.max_node.to_string(), IN)),
    field("TRESUsageInMaxTask", 18, |row, units| tres(row, units, |spread| spread.max_task.to_string(), IN)),
    field("TRESUsageInMin", 14, |row, units| tres(row, units, |spread| spread.min.to_string(), IN)),
    field("TRESUsageInMinNode", 18, |row, units| tres(row, units, |spread| spread.min_node.to_string(), IN)),
    field("TRESUsageInMinTask", 18, |row, units| tres(row, units, |spread| spread.min_task.to_string(), IN)),
    field("TRESUsageInTot", 14, |row, units| tres(row, units, |spread| spread.total.to_string(), IN)),
    field("TRESUsageOutAve", 15, |row, units| tres(row, units, |spread| spread.average().to_string(), OUT)),
    field("TRESUsageOutMax", 15, |row, units| tres(row, units, |spread| spread.max.to_string(), OUT)),
    field("TRESUsageOutMaxNode", 19, |row, units| tres(row, units, |spread| spread.max_node.to_string(), OUT)),
    field("TRESUsageOutMaxTask", 19, |row, units| tres(row, units, |spread| spread.max_task.to_string(), OUT)),
    field("TRESUsageOutMin", 15, |row, units| tres(row, units, |spread| spread.min.to_string(), OUT)),
    field("TRESUsageOutMinNode", 19, nothing),
    field("TRESUsageOutMinTask", 19, nothing),
    field("TRESUsageOutTot", 15, |row, units| tres(row, units, |spread| spread.total.to_string(), OUT)),
];

const DEFAULT: &str = "jobid,maxvmsize,maxvmsizenode,maxvmsizetask,avevmsize,maxrss,maxrssnode,maxrsstask,averss,maxpages,\
maxpagesnode,maxpagestask,avepages,mincpu,mincpunode,mincputask,avecpu,ntasks,avecpufreq,reqcpufreqmin,reqcpufreqmax,\
reqcpufreqgov,consumedenergy,maxdiskread,maxdiskreadnode,maxdiskreadtask,avediskread,maxdiskwrite,maxdiskwritenode,\
maxdiskwritetask,avediskwrite,tresusageinave,tresusageinmax,tresusageinmaxnode,tresusageinmaxtask,tresusageinmin,\
tresusageinminnode,tresusageinmintask,tresusageintot,tresusageoutave,tresusageoutmax,tresusageoutmaxnode,\
tresusageoutmaxtask,tresusageoutmin,tresusageoutminnode,tresusageoutmintask,tresusageouttot";
const PIDS: &str = "jobid,nodelist,pids";

/// What TRES calls it, and where it is.
type Kind = (&'static str, fn(&Usage) -> &Spread);

const IN: &[Kind] = &[
    ("cpu", |usage| &usage.cpu_micros),
    ("fs/disk", |usage| &usage.read_bytes),
    ("mem", |usage| &usage.rss_bytes),
    ("pages", |usage| &usage.page_faults),
    ("vmem", |usage| &usage.vsize_bytes),
];
const OUT: &[Kind] = &[("fs/disk", |usage| &usage.written_bytes)];

/// `cpu=00:00:01,fs/disk=12345,mem=1236K,…`
fn tres(row: &Row, units: Units, value: fn(&Spread) -> String, kinds: &[Kind]) -> String {
    let shown = kinds.iter().map(|(name, spread)| {
        let text = value(spread(&row.usage));
        let text = match (*name, text.parse::<u64>()) {
            // Numbers of tasks are small; times and sizes are what the kind says.
            ("cpu", Ok(micros)) if micros > 65_536 || micros == 0 => time(micros),
            ("mem" | "vmem", Ok(bytes)) if bytes > 65_536 => size(bytes, units),
            _ => text,
        };
        format!("{name}={text}")
    });
    shown.collect::<Vec<_>>().join(",")
}

/// `1-02:03:04`
fn time(micros: u64) -> String {
    let secs = micros / 1_000_000;
    let (days, rest) = (secs / 86_400, secs % 86_400);
    let clock = format!("{:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60);
    if days > 0 { format!("{days}-{clock}") } else { clock }
}

/// `1236K`, `1.21M`; whole numbers without a fraction.
fn size(bytes: u64, units: Units) -> String {
    if !units.convert {
        return bytes.to_string();
    }
    let mut value = bytes as f64;
    let mut letters = ["", "K", "M", "G", "T", "P"].into_iter();
    let mut letter = letters.next().unwrap_or_default();
    while value > 1024.0 {
        let Some(next) = letters.next() else { break };
        value /= 1024.0;
        letter = next;
    }
    if value.fract() == 0.0 { format!("{value:.0}{letter}") } else { format!("{value:.2}{letter}") }
}

/// Chosen fields with their widths.
fn chosen(format: &str) -> Result<Vec<(&'static Field, i32)>, String> {
    let one = |item: &str| {
        let (name, width) = item.split_once('%').unwrap_or((item, ""));
        let known = FIELDS.iter().find(|field| field.name.eq_ignore_ascii_case(name));
        let field = known
            .or_else(|| {
                FIELDS
                    .iter()
                    .find(|field| field.name.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name)))
            })
            .ok_or_else(|| format!("Invalid field requested: \"{name}\""))?;
        Ok((field, width.parse().unwrap_or(field.width)))
    };
    format.split(',').filter(|item| !item.is_empty()).map(one).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Columns,
    Bars { at_end: bool },
}

fn render(rows: &[Row], fields: &[(&Field, i32)], style: Style, has_header: bool, units: Units) -> String {
    let line = |texts: Vec<String>| match style {
        Style::Bars { at_end } => texts.join("|") + if at_end { "|\n" } else { "\n" },
        Style::Columns => {
            let cell = |(text, (_, width)): (&String, &(&Field, i32))| {
                let room = width.unsigned_abs() as usize;
                let mut text = text.clone();
                if text.chars().count() > room {
                    text = text.chars().take(room.saturating_sub(1)).collect::<String>() + "+";
                }
                if *width < 0 { format!("{text:<room$} ") } else { format!("{text:>room$} ") }
            };
            texts.iter().zip(fields).map(cell).collect::<String>() + "\n"
        }
    };
    let mut out = String::new();
    if has_header {
        out.push_str(&line(fields.iter().map(|(field, _)| field.name.to_string()).collect()));
        if style == Style::Columns {
            out.push_str(&line(fields.iter().map(|(_, width)| "-".repeat(width.unsigned_abs() as usize)).collect()));
        }
    }
    for row in rows {
        out.push_str(&line(fields.iter().map(|(field, _)| (field.show)(row, units)).collect()));
    }
    out
}

/// `5`, `5.0`, `5.batch`
fn wanted(item: &str) -> Option<(JobId, Option<StepId>)> {
    let (job, step) = item.split_once('.').map_or((item, None), |(job, step)| (job, Some(step)));
    let step = match step {
        None => None,
        Some("batch") => Some(StepId::Batch),
        Some(number) => Some(StepId::Number(number.parse().ok()?)),
    };
    Some((job.parse().ok()?, step))
}

pub fn run(arguments: &[String]) -> i32 {
    let parsed = match parse(FLAGS, Operands::Mixed, arguments) {
        Ok(parsed) => parsed,
        Err(problem) => {
            eprintln!("sstat: {problem}");
            return 1;
        }
    };
    if parsed.has("help") || parsed.has("usage") {
        print(if parsed.has("help") {
            HELP
        } else {
            "Usage: sstat [options] -j <job(.stepid)>\n\tUse --help for help\n"
        });
        return 0;
    }
    if parsed.has("version") {
        print(&version::line());
        return 0;
    }
    if parsed.has("helpformat") {
        let cells = |row: &[Field]| row.iter().map(|field| format!("{:<19}", field.name)).collect::<Vec<_>>().join(" ");
        print(&FIELDS.chunks(4).map(|row| cells(row) + "\n").collect::<String>());
        return 0;
    }
    let format = match (parsed.has("pidformat"), parsed.value("format").or(parsed.value("fields"))) {
        (true, _) => PIDS,
        (false, Some(format)) => format,
        (false, None) => DEFAULT,
    };
    let fields = match chosen(format) {
        Ok(fields) => fields,
        Err(why) => {
            eprintln!("sstat: error: {why}");
            return 1;
        }
    };
    let named = parsed.options.iter().filter(|(name, _)| *name == "jobs").filter_map(|(_, value)| value.clone());
    let items: Vec<String> = named.chain(parsed.operands.clone()).collect();
    let jobs: Vec<String> =
        items.iter().flat_map(|list| list.split(',')).filter(|item| !item.is_empty()).map(str::to_string).collect();
    if jobs.is_empty() {
        eprintln!("sstat: error: You didn't give me any jobs to stat.");
        return 1;
    }
    let style = match (parsed.has("parsable"), parsed.has("parsable2")) {
        (_, true) => Style::Bars { at_end: false },
        (true, false) => Style::Bars { at_end: true },
        (false, false) => Style::Columns,
    };
    if let Some(wrong) = jobs.iter().find(|item| wanted(item).is_none()) {
        eprintln!("sstat: fatal: Bad job/step specified: {wrong}");
        return 1;
    }
    let (mut rows, mut code) = (Vec::new(), 0);
    for item in &jobs {
        match block_on(look(item, parsed.has("allsteps"))) {
            // Neither is a failure to Slurm.
            Ok(None) => eprintln!("sstat: error: couldn't get steps for job {item}"),
            Ok(Some(found)) if found.is_empty() && item.contains('.') => {
                eprintln!("sstat: error: StepId={item} not found running.");
            }
            Ok(Some(found)) if found.is_empty() => eprintln!("sstat: error: No steps running for job {item}"),
            Ok(Some(found)) => rows.extend(found),
            Err(Trouble::NoCluster(text) | Trouble::Call(text)) => {
                eprintln!("sstat: error: {text}");
                code = 1;
            }
        }
    }
    print(&render(&rows, &fields, style, !parsed.has("noheader"), Units { convert: !parsed.has("noconvert") }));
    code
}

/// None: there is no such job.
async fn look(item: &str, all: bool) -> Result<Option<Vec<Row>>, Trouble> {
    let Some((id, step)) = wanted(item) else { return Ok(None) };
    let (cluster, mut controller) = trouble::connect().await?;
    let Some((job, _)) = live::job(&mut controller, id).await? else {
        let filter = JobFilter { jobs: vec![id.into()], with_finished: true, ..JobFilter::default() };
        let is_known = !controller.all_jobs(&filter).await?.jobs.is_empty();
        return Ok(is_known.then(Vec::new));
    };
    let mut steps: BTreeMap<StepId, Row> = BTreeMap::new();
    for (node, run) in live::runs(&cluster, &job).await {
        let LiveRun { step: id, usage, processes, .. } = run;
        let name = format!("{}.{id}", job.id);
        let empty = || Row { name, usage: Usage::default(), nodes: Vec::new(), pids: Vec::new() };
        let row = steps.entry(id).or_insert_with(empty);
        row.usage.add(&usage.on(&node));
        row.nodes.push(node.to_string());
        row.pids.extend(processes.iter().map(|process| process.pid.to_string()));
    }
    let rows = steps.into_iter().filter(|(id, _)| step.is_none_or(|step| step == *id)).map(|(_, row)| row);
    // Without a step the first stands for the job.
    Ok(Some(if all || step.is_some() { rows.collect() } else { rows.take(1).collect() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_written_as_slurm_does() {
        let units = Units { convert: true };
        assert_eq!([size(0, units), size(1236 << 10, units), size(4 << 20, units)], ["0", "1.21M", "4M"]);
        assert_eq!(size(4097, Units { convert: false }), "4097");
        assert_eq!([time(61_900_000), time(90_061_000_000)], ["00:01:01", "1-01:01:01"]);
    }

    #[test]
    fn columns_have_their_widths() {
        let row =
            Row { name: "5.0".into(), usage: Usage::default(), nodes: vec!["n1".into()], pids: vec!["77".into()] };
        let fields = chosen("jobid,ntasks%4,pids").unwrap();
        let text = render(&[row], &fields, Style::Columns, true, Units { convert: true });
        assert_eq!(
            text,
            format!(
                "JobID        NTa+ {:<20} \n------------ ---- {} \n5.0             0 {:<20} \n",
                "Pids",
                "-".repeat(20),
                "77"
            )
        );
        assert!(chosen("nosuch").is_err());
    }
}
