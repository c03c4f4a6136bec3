//! What a script's value means for a field of a job.
use model::dependency::Dependency;
use model::gres::{self, GresRequest};
use model::spec::TimeLimit;
use model::time::Span;
use model::{NodeName, Reject, Timestamp, error_texts, hostlist};
use serde_json::{Value, json};

/// Slurm's numbers for what was not said, and for what has no end.
pub const NO_VALUE: u64 = 4_294_967_294;
pub const NO_SHORT_VALUE: u64 = 65_534;
pub const INFINITE: u64 = 4_294_967_295;
/// What Slurm adds to a nice value.
pub const NICE_OFFSET: i64 = 2_147_483_648;

pub fn or_none(number: Option<impl Into<u64>>) -> Value {
    json!(number.map_or(NO_VALUE, Into::into))
}

pub fn short_or_none(number: Option<u32>) -> Value {
    json!(number.map_or(NO_SHORT_VALUE, u64::from))
}

pub fn or_nil(text: &str) -> Value {
    if text.is_empty() { Value::Null } else { json!(text) }
}

/// A script's word that makes no sense for its field.
pub fn wrong(name: &str, value: &Value) -> Reject {
    by_script(format!("job_submit.lua: {value} is no value for {name}"))
}

pub fn by_script(told: String) -> Reject {
    Reject::BySite { code: error_texts::UNSPECIFIED, told }
}

/// Numbers do for texts, as in Lua; nothing is an empty one.
pub fn text(name: &str, value: &Value) -> Result<String, Reject> {
    match value {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err(wrong(name, value)),
    }
}

pub fn words(name: &str, value: &Value) -> Result<Vec<String>, Reject> {
    let text = text(name, value)?;
    Ok(text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect())
}

pub fn nodes(name: &str, value: &Value) -> Result<Vec<NodeName>, Reject> {
    let text = text(name, value)?;
    let names = hostlist::expand(&text).map_err(|_| Reject::NoSuchNode(text.clone()))?;
    Ok(names.into_iter().map(NodeName::from).collect())
}

/// Texts do for numbers, as in Lua; Slurm's numbers for "not said" are none.
pub fn number(name: &str, value: &Value) -> Result<Option<u64>, Reject> {
    let number = match value {
        Value::Null => return Ok(None),
        Value::Bool(flag) => f64::from(u8::from(*flag)),
        Value::Number(number) => number.as_f64().ok_or_else(|| wrong(name, value))?,
        Value::String(text) => text.trim().parse().map_err(|_| wrong(name, value))?,
        _ => return Err(wrong(name, value)),
    };
    if number < 0.0 || number.is_nan() {
        return Err(wrong(name, value));
    }
    let whole = number as u64;
    Ok(Some(whole).filter(|whole| ![NO_VALUE, NO_SHORT_VALUE].contains(whole) && *whole < u64::MAX - 1))
}

pub fn count(name: &str, value: &Value) -> Result<Option<u32>, Reject> {
    let count = number(name, value)?;
    count.map(|count| u32::try_from(count).map_err(|_| wrong(name, value))).transpose()
}

/// 0 and 1 of Slurm's small numbers.
pub fn flag(name: &str, value: &Value) -> Result<Option<bool>, Reject> {
    Ok(number(name, value)?.map(|number| number != 0))
}

pub fn moment(name: &str, value: &Value) -> Result<Option<Timestamp>, Reject> {
    Ok(number(name, value)?.filter(|secs| *secs > 0).map(Timestamp::from_secs))
}

pub fn seconds(name: &str, value: &Value) -> Result<Option<Span>, Reject> {
    Ok(number(name, value)?.map(Span::from_secs))
}

/// A time limit in minutes.
pub fn minutes(limit: TimeLimit) -> u64 {
    limit.span().map_or(INFINITE, |span| span.secs().div_ceil(60))
}

pub fn limit(name: &str, value: &Value) -> Result<Option<TimeLimit>, Reject> {
    Ok(number(name, value)?.map(|minutes| match minutes {
        INFINITE => TimeLimit::Unlimited,
        minutes => TimeLimit::Secs(minutes.saturating_mul(60)),
    }))
}

pub fn dependency_text(wanted: &Dependency) -> String {
    let sign = if wanted.any_is_enough { "?" } else { "," };
    wanted.terms.iter().map(|term| term.to_string()).collect::<Vec<_>>().join(sign)
}

/// As `devices` reads them.
pub fn joined(units: &[GresRequest]) -> String {
    units.iter().map(|unit| format!("gres:{unit}")).collect::<Vec<_>>().join(",")
}

/// `gres:gpu:2`, also as later versions write it, `gres/gpu:2`.
pub fn devices(name: &str, value: &Value) -> Result<Vec<GresRequest>, Reject> {
    let plain = text(name, value)?.replace("gres/", "gres:");
    gres::parse_list(&plain).map_err(|_| Reject::StepGres)
}
