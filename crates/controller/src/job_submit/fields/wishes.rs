//! Where, when, and on whose account a job is to run, and where its files are.
use model::dependency;
use model::spec::{ArraySpec, Mail};
use model::{JobSpec, Reject, license, ranges};
use serde_json::{Value, json};

use super::Change::Yes;
use super::Field;
use crate::job_submit::values::{
    NICE_OFFSET, NO_VALUE, count, dependency_text, flag, limit, minutes, moment, number, or_nil, or_none,
    short_or_none, text, words, wrong,
};
use crate::plugin::mail;

pub fn fields() -> Vec<Field> {
    vec![
        (
            "account",
            |spec| or_nil(&spec.account),
            Yes(|spec, name, value| {
                spec.account = text(name, value)?.to_lowercase();
                Ok(())
            }),
        ),
        (
            "qos",
            |spec| or_nil(&spec.qos),
            Yes(|spec, name, value| {
                spec.qos = text(name, value)?.to_lowercase();
                Ok(())
            }),
        ),
        (
            "partition",
            |spec| or_nil(&spec.partitions.join(",")),
            Yes(|spec, name, value| {
                spec.partitions = words(name, value)?;
                Ok(())
            }),
        ),
        (
            "reservation",
            |spec| or_nil(&spec.reservations.join(",")),
            Yes(|spec, name, value| {
                spec.reservations = words(name, value)?;
                Ok(())
            }),
        ),
        (
            "array_inx",
            array_text,
            Yes(|spec, name, value| {
                let text = text(name, value)?;
                spec.array = match text.as_str() {
                    "" => None,
                    text => {
                        let (tasks, limit) = ranges::parse_array(text).map_err(|_| Reject::BadArray)?;
                        Some(ArraySpec { tasks, limit })
                    }
                };
                Ok(())
            }),
        ),
        (
            "begin_time",
            |spec| json!(spec.begin.map_or(0, |time| time.secs())),
            Yes(|spec, name, value| {
                spec.begin = moment(name, value)?;
                Ok(())
            }),
        ),
        (
            "dependency",
            |spec| or_nil(&dependency_text(&spec.dependency)),
            Yes(|spec, name, value| {
                spec.dependency = match text(name, value)?.as_str() {
                    "" => Default::default(),
                    text => dependency::parse(text).map_err(|_| Reject::BadDependency)?,
                };
                Ok(())
            }),
        ),
        (
            "licenses",
            |spec| or_nil(&spec.licenses.to_string()),
            Yes(|spec, name, value| {
                spec.licenses = license::parse(&text(name, value)?).ok_or(Reject::BadLicenses)?;
                Ok(())
            }),
        ),
        (
            "mail_type",
            |spec| json!(spec.mail.as_ref().map_or(0, mail::bits)),
            Yes(|spec, name, value| {
                let kinds = mail::of_bits(count(name, value)?.unwrap_or(0));
                match (&mut spec.mail, kinds.is_empty()) {
                    (Some(mail), _) => mail.kinds = kinds,
                    (None, true) => (),
                    (None, false) => spec.mail = Some(Mail { kinds, ..Mail::default() }),
                }
                Ok(())
            }),
        ),
        (
            "mail_user",
            |spec| or_nil(spec.mail.as_ref().map_or("", |mail| &mail.to)),
            Yes(|spec, name, value| {
                let to = text(name, value)?;
                let mail = spec.mail.get_or_insert_default();
                mail.to = to;
                if mail.has_plain_address() { Ok(()) } else { Err(wrong(name, value)) }
            }),
        ),
        (
            "nice",
            |spec| {
                json!(match spec.nice {
                    0 => NO_VALUE as i64,
                    nice => i64::from(nice) + NICE_OFFSET,
                })
            },
            Yes(|spec, name, value| {
                // Scripts give it as users do, or with Slurm's offset.
                let given = match value.as_f64() {
                    Some(given) if given < 0.0 => given as i64,
                    _ => number(name, value)?.map_or(0, |given| given as i64),
                };
                let nice = if given >= NICE_OFFSET / 2 { given - NICE_OFFSET } else { given };
                spec.nice = i32::try_from(nice).map_err(|_| wrong(name, value))?;
                Ok(())
            }),
        ),
        (
            "priority",
            |spec| or_none(spec.priority),
            Yes(|spec, name, value| {
                spec.priority = count(name, value)?;
                spec.held |= spec.priority == Some(0);
                Ok(())
            }),
        ),
        (
            "site_factor",
            |spec| {
                json!(match spec.site_factor {
                    0 => NO_VALUE as i64,
                    factor => i64::from(factor) + NICE_OFFSET,
                })
            },
            Yes(|spec, name, value| {
                let given = number(name, value)?.map_or(0, |given| given as i64);
                let factor = if given >= NICE_OFFSET / 2 { given - NICE_OFFSET } else { given };
                spec.site_factor = i32::try_from(factor).map_err(|_| wrong(name, value))?;
                Ok(())
            }),
        ),
        (
            "requeue",
            |spec| short_or_none(spec.requeue.map(u32::from)),
            Yes(|spec, name, value| {
                spec.requeue = flag(name, value)?;
                Ok(())
            }),
        ),
        (
            "time_limit",
            |spec| json!(spec.time_limit.map_or(NO_VALUE, minutes)),
            Yes(|spec, name, value| {
                spec.time_limit = limit(name, value)?;
                Ok(())
            }),
        ),
        (
            "time_min",
            |spec| json!(spec.time_min.map_or(NO_VALUE, minutes)),
            Yes(|spec, name, value| {
                spec.time_min = limit(name, value)?;
                Ok(())
            }),
        ),
        (
            "acctg_freq",
            |spec| or_nil(&spec.accounting_secs.map_or(String::new(), |secs| secs.to_string())),
            Yes(|spec, name, value| {
                spec.accounting_secs = count(name, value)?;
                Ok(())
            }),
        ),
        (
            "std_in",
            |spec| or_nil(spec.stdin.as_deref().unwrap_or(if spec.is_batch() { "/dev/null" } else { "" })),
            Yes(|spec, name, value| {
                spec.stdin = file(name, value)?;
                Ok(())
            }),
        ),
        (
            "std_out",
            |spec| or_nil(spec.stdout.as_deref().unwrap_or("")),
            Yes(|spec, name, value| {
                spec.stdout = file(name, value)?;
                Ok(())
            }),
        ),
        (
            "std_err",
            |spec| or_nil(spec.stderr.as_deref().unwrap_or("")),
            Yes(|spec, name, value| {
                spec.stderr = file(name, value)?;
                Ok(())
            }),
        ),
    ]
}

fn file(name: &str, value: &Value) -> Result<Option<String>, Reject> {
    Ok(Some(text(name, value)?).filter(|path| !path.is_empty()))
}

fn array_text(spec: &JobSpec) -> Value {
    let Some(array) = &spec.array else { return Value::Null };
    let limit = array.limit.map_or(String::new(), |limit| format!("%{limit}"));
    json!(format!("{}{limit}", array.tasks))
}
