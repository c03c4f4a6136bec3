//! Everything that users write: lists, sets, times, sizes, features, directives.
use model::directive::Sources;
use model::pool::BurstBufferConfig;
use model::{Plugin, calendar, directive, hostlist, pattern, ranges, when};

/// A parser of text, and a text that it takes.
type Expression = (&'static str, fn(&str));

/// The parser must have done its work.
fn parsed<T>(value: T) {
    std::hint::black_box(value);
}

const EXPRESSIONS: &[Expression] = &[
    ("n[1-10,20-30]x[01-03],login", |text| {
        if let Ok(names) = hostlist::expand(text) {
            let written = model::hostlist::compress(names.iter().map(String::as_str));
            let again = hostlist::expand(&written).expect("what is written can be read");
            assert_eq!(names.iter().collect::<std::collections::BTreeSet<_>>(), again.iter().collect());
        }
    }),
    ("1-100:7,200%5", |text| {
        let _ = ranges::parse_array(text).map(|(tasks, _)| tasks.to_string());
    }),
    ("[rack1|rack2]&(gpu*2)", |text| parsed(model::features::parse(text))),
    ("rack1,rack2&gpu", |text| parsed(model::feature_sets::parse(text))),
    ("afterok:1:2,afterany:3_4?singleton", |text| parsed(model::dependency::parse(text))),
    ("1-02:03:04", |text| parsed(model::duration::parse(text))),
    ("now+2hours", |text| parsed(when::parse(text, 1_800_000_000, &calendar::FixedOffset(7_200), when::Lean::Future))),
    ("2027-01-20T12:34", |text| {
        parsed(when::parse(text, 1_800_000_000, &calendar::FixedOffset(7_200), when::Lean::Past))
    }),
    ("3.5TiB", |text| parsed(model::size::parse_bytes(text, 1))),
    ("16G", |text| parsed(model::size::parse_megabytes(text))),
    ("2k", |text| parsed(model::size::parse_amount(text))),
    ("gpu:h100:4,shard:2", |text| parsed(model::gres::parse_list(text))),
    ("matlab:2|ansys:1", |text| parsed(model::license::parse(text))),
    ("matlab:2,ansys:1", |text| parsed(model::license::parse_list(text))),
    ("B:USR1@120", |text| parsed(model::signal::parse(text))),
    ("cpu=2,mem=3G,gres/gpu=1", |text| parsed(model::accounts::tres::parse(text))),
    ("CPU=1.0,Mem=0.25G", |text| parsed(model::billing::Weights::parse(text))),
    ("0-7,16-23", |text| parsed(text.parse::<model::cpuset::CpuSet>())),
    ("0xff00ff00", |text| parsed(model::cpuset::CpuSet::parse_mask(text))),
    ("medium-high:conservative", |text| parsed(model::cpu_freq::CpuFrequency::parse(text))),
    ("slurm-%A_%4a-%x-%N.out", |text| parsed(pattern::expand(text, &pattern::PatternValues::default()))),
    ("12000-12999", |text| parsed(model::ports::PortRange::parse(text))),
];

pub fn seeds() -> Vec<Vec<u8>> {
    let seed = |(at, (text, _)): (usize, &Expression)| [&[at as u8], text.as_bytes()].concat();
    EXPRESSIONS.iter().enumerate().map(seed).collect()
}

pub fn run(bytes: &[u8]) {
    if let Some((which, text)) = super::choice_and_text(bytes, EXPRESSIONS.len()) {
        EXPRESSIONS[which].1(text);
    }
}

const PLUGINS: [Plugin; 3] = [Plugin::Native, Plugin::Lua, Plugin::DataWarp];

pub fn directive_seeds() -> Vec<Vec<u8>> {
    let texts = [
        "#BB create_persistent name=alpha capacity=32GB access=striped type=scratch\n#BB use_persistent name=alpha\n",
        "#DW jobdw capacity=10GB access_mode=striped,private type=scratch\n#DW stage_in type=file source=/a destination=$DW_JOB_STRIPED/a\n",
        "#BB_LUA pool=p capacity=1M\n",
        "#BB jobbb capacity=1G\n#BB stage_in source=/a/* destination=b\n#BB stage_out source=b destination=/c\n",
    ];
    let seed = |which: u8, text: &str| [&[which], text.as_bytes()].concat();
    texts.iter().flat_map(|text| (0..3).map(move |which| seed(which, text))).collect()
}

/// As the batch script, and as `--bb`.
pub fn run_directives(bytes: &[u8]) {
    let Some((which, text)) = super::choice_and_text(bytes, PLUGINS.len()) else { return };
    let config = BurstBufferConfig { plugin: PLUGINS[which], max_directives: 32, ..BurstBufferConfig::default() };
    for sources in [Sources { script: text, ..Sources::default() }, Sources { option: text, ..Sources::default() }] {
        match directive::request(&config, sources, &|name| name.starts_with('n')) {
            Ok(Some(request)) => assert!(!request.text.is_empty()),
            Ok(None) => (),
            // A complaint can always be shown.
            Err(problem) => assert!(!problem.to_string().is_empty()),
        }
    }
}
