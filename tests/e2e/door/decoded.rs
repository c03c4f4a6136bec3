//! Values that are short as bytes and long in memory: what decoding costs is in proportion to what was sent.
use std::time::Instant;

use model::JobSpec;
use model::spec::Size;
use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor, value};

use super::callers::{Entrance, RawCaller, on_own_thread};
use super::contract::{FieldContent, written};
use super::sizes::peak_mib;
use crate::cluster::{Cluster, is_alive};

const N_ITEMS: u32 = 1 << 20;
/// What the controller's peak may grow by, in MiB: some messages of a MiB and what they may be decoded into.
const GROWTH_MAX: u64 = 96;

/// Asks a record for its fields and gives it nothing.
struct FieldNames<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for FieldNames<'_> {
    type Error = value::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, value::Error> {
        Err(value::Error::custom("no record"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, value::Error> {
        *self.0 = fields;
        Err(value::Error::custom("only its fields were wanted"))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

fn fields_of<T: Deserialize<'static>>() -> &'static [&'static str] {
    let mut fields: &'static [&'static str] = &[];
    let _ = T::deserialize(FieldNames(&mut fields));
    assert!(!fields.is_empty());
    fields
}

/// A map of one entry.
fn entry(field: &str, content: &[u8]) -> Vec<u8> {
    [&[0x81, 0xd9, field.len() as u8], field.as_bytes(), content].concat()
}

fn list_of(item: u8, n_items: u32) -> Vec<u8> {
    [&[0xdd][..], &n_items.to_be_bytes(), &vec![item; n_items as usize]].concat()
}

#[test]
fn short_items_of_every_list_cost_what_they_weigh() {
    let head = Cluster::up("--nodes 1");
    let pid = head.controller_pid();
    let entrance = Entrance::Local { socket: head.dir.join("run/controller.sock"), uid: 65_534, gid: 65_534 };
    let before = peak_mib(pid);
    const EMPTY_TEXT: u8 = 0xa0;
    const EMPTY_MAP: u8 = 0x80;
    let begun = Instant::now();
    let (n_refused, grown) = on_own_thread(async move {
        let caller = RawCaller::open(&entrance, &[]).await;
        let mut n_refused = 0;
        for (item, n_items) in [(EMPTY_TEXT, N_ITEMS), (EMPTY_MAP, N_ITEMS / 4)] {
            let list = list_of(item, n_items);
            let own = fields_of::<JobSpec>().iter().map(|field| entry(field, &list));
            let of_size = fields_of::<Size>().iter().map(|field| entry("size", &entry(field, &list)));
            for spec in own.chain(of_size) {
                let body = written(&[(1, FieldContent::Bytes(spec))]);
                n_refused += usize::from(caller.call("/spur.v1.Controller/Submit", body, false).await.is_err());
            }
        }
        // As long as a request may be.
        let spec = entry("arguments", &list_of(EMPTY_TEXT, 31 << 20));
        let body = written(&[(1, FieldContent::Bytes(spec))]);
        n_refused += usize::from(caller.call("/spur.v1.Controller/Submit", body, false).await.is_err());
        (n_refused, peak_mib(pid) - before)
    });
    eprintln!("{n_refused} submissions refused in {:?}, {grown} MiB", begun.elapsed());
    assert_eq!(n_refused, 2 * (fields_of::<JobSpec>().len() + fields_of::<Size>().len()) + 1);
    assert!(is_alive(pid) && grown < GROWTH_MAX, "{grown} MiB");
    head.sbatch("-H -o /dev/null --wrap true");
}

#[test]
fn large_honest_submissions_are_decoded() {
    let names = (1..=10_000).map(|number| format!("n{number}").as_str().into()).collect::<Vec<model::NodeName>>();
    let mut spec = JobSpec {
        arguments: (0..20_000).map(|number| number.to_string()).collect(),
        comment: "x".repeat(1000),
        ..JobSpec::default()
    };
    spec.size.nodes = names.clone();
    let read: JobSpec = model::codec::decode_sent(&model::codec::encode(&spec)).unwrap();
    assert_eq!(read, spec);
    let head = Cluster::up("--nodes 1");
    let long = "x".repeat(60);
    head.sbatch(&format!(
        "-H -o /dev/null --array=1-20000%5 --export=ALL,{} --wrap true",
        (0..300).map(|number| format!("V{number}={long}")).collect::<Vec<_>>().join(",")
    ));
    let refused = head.run("sbatch -H -w 'n[1-10000]' --wrap true");
    assert!(!refused.err.contains("memory") && !refused.err.contains("too many values"), "{refused:?}");
}
