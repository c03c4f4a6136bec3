//! Every column of a priority, by letter.
use model::priority::{Factors, PriorityConfig, TresPart};

use super::Row;
use crate::job_view::put;
use crate::render::{Column, Key, or_null, view};

view! {
    /// The view of priorities.
    Priorities of Row
}

pub static COLUMNS: &[Column<Priorities>] = &[
    column('i', "jobid", "JOBID", |row, out| match row.job {
        Some(job) => put(out, job.array_id().unwrap_or(job.id)),
        None => out.push_str("Weights"),
    })
    .sorted_by(|row| Key::Number(row.job.map_or(0, |job| i64::from(job.id.0)))),
    column('r', "partition", "PARTITION", |row, out| out.push_str(row.partition)),
    column('u', "user", "USER", |row, out| {
        of_job(row, out, |row, out| {
            let uid = row.job.map_or(0, |job| job.spec.uid);
            out.push_str(&row.names.user(uid));
        })
    }),
    column('o', "account", "ACCOUNT", |row, out| {
        of_job(row, out, |row, out| {
            or_null(row.job.map_or("", |job| &job.spec.account), out);
        })
    }),
    column('n', "qosname", "QOSNAME", |row, out| {
        of_job(row, out, |row, out| {
            or_null(row.job.map_or("", |job| &job.spec.qos), out);
        })
    }),
    column('c', "cluster", "CLUSTER", |row, out| out.push_str(&row.config.cluster_name)),
    column('Y', "priority", "PRIORITY", |row, out| of_job(row, out, |row, out| put(out, row.priority)))
        .sorted_by(|row| Key::Number(i64::from(row.priority))),
    column('y', "normpriority", "PRIORITY", |row, out| {
        of_job(row, out, |row, out| {
            put(out, format_args!("{:.14}", f64::from(row.priority) / f64::from(u32::MAX)));
        })
    })
    .sorted_by(|row| Key::Number(i64::from(row.priority))),
    column('S', "site", "SITE", |row, out| put(out, row.job.map_or(1, |job| job.site_factor)))
        .sorted_by(|row| Key::Number(row.job.map_or(0, |job| i64::from(job.site_factor)))),
    column('N', "nice", "NICE", |row, out| {
        of_job(row, out, |row, out| {
            put(out, row.job.map_or(0, |job| job.spec.nice));
        })
    })
    .sorted_by(|row| Key::Number(row.job.map_or(0, |job| i64::from(job.spec.nice)))),
    column('A', "age", "AGE", |row, out| weighed(row, out, |f| f.age, |w| w.weight_age))
        .sorted_by(|row| key(row.factors.age)),
    column('a', "normage", "AGE", |row, out| plain(row, out, |f| f.age, |w| w.weight_age))
        .sorted_by(|row| key(row.factors.age)),
    column('B', "association", "ASSOC", |row, out| weighed(row, out, |f| f.association, |w| w.weight_association))
        .sorted_by(|row| key(row.factors.association)),
    column('b', "normassociation", "ASSOC", |row, out| plain(row, out, |f| f.association, |w| w.weight_association))
        .sorted_by(|row| key(row.factors.association)),
    column('F', "fairshare", "FAIRSHARE", |row, out| weighed(row, out, |f| f.fair_share, |w| w.weight_fair_share))
        .sorted_by(|row| key(row.factors.fair_share)),
    column('f', "normfairshare", "FAIRSHARE", |row, out| plain(row, out, |f| f.fair_share, |w| w.weight_fair_share))
        .sorted_by(|row| key(row.factors.fair_share)),
    column('J', "jobsize", "JOBSIZE", |row, out| weighed(row, out, |f| f.job_size, |w| w.weight_job_size))
        .sorted_by(|row| key(row.factors.job_size)),
    column('j', "normjobsize", "JOBSIZE", |row, out| plain(row, out, |f| f.job_size, |w| w.weight_job_size))
        .sorted_by(|row| key(row.factors.job_size)),
    column('P', "partitionfactor", "PARTITION", |row, out| weighed(row, out, |f| f.partition, |w| w.weight_partition))
        .sorted_by(|row| key(row.factors.partition)),
    column('p', "normpartition", "PARTITION", |row, out| plain(row, out, |f| f.partition, |w| w.weight_partition))
        .sorted_by(|row| key(row.factors.partition)),
    column('Q', "qos", "QOS", |row, out| weighed(row, out, |f| f.qos, |w| w.weight_qos))
        .sorted_by(|row| key(row.factors.qos)),
    column('q', "normqos", "QOS", |row, out| plain(row, out, |f| f.qos, |w| w.weight_qos))
        .sorted_by(|row| key(row.factors.qos)),
    column('T', "tres", "TRES", |row, out| match row.job {
        Some(_) => of_tres(row, out, |part, out| put(out, format_args!("{:.0}", part.weighed()))),
        None => or_null(&row.config.scheduler.priority.weight_tres, out),
    })
    .sorted_by(|row| key(row.factors.tres)),
    column('t', "normtres", "TRES", |row, out| {
        of_tres(row, out, |part, out| put(out, format_args!("{:.2}", part.factor)));
    })
    .sorted_by(|row| key(row.factors.tres)),
];

/// `cpu=125,gres/gpu=3000`
fn of_tres(row: &Row, out: &mut String, fill: impl Fn(&TresPart, &mut String)) {
    for (index, part) in row.tres.iter().enumerate() {
        out.push_str(if index == 0 { "" } else { "," });
        put(out, format_args!("{}=", part.name));
        fill(part, out);
    }
}

fn key(factor: f64) -> Key<'static> {
    Key::Number((factor * 1e9) as i64)
}

/// The row of weights has nothing to say here.
fn of_job(row: &Row, out: &mut String, fill: impl Fn(&Row, &mut String)) {
    if row.job.is_some() {
        fill(row, out);
    }
}

fn weighed(row: &Row, out: &mut String, factor: fn(&Factors) -> f64, weight: fn(&PriorityConfig) -> u32) {
    let weight = weight(&row.config.scheduler.priority);
    match row.job {
        Some(_) => put(out, format_args!("{:.0}", factor(&row.factors) * f64::from(weight))),
        None => put(out, weight),
    }
}

fn plain(row: &Row, out: &mut String, factor: fn(&Factors) -> f64, weight: fn(&PriorityConfig) -> u32) {
    match row.job {
        // What does not count is not worked out.
        Some(_) if weight(&row.config.scheduler.priority) == 0 => put(out, "0.0000000"),
        Some(_) => put(out, format_args!("{:.7}", factor(&row.factors))),
        None => put(out, weight(&row.config.scheduler.priority)),
    }
}
