//! What a caller's texts and lists may come to: one walk over everything a value holds, so that no field is forgotten.
//!
//! The walk is a serializer that counts: it sees each field of each noun by its name, also those that are added later.
//! A bound that differs from the usual one is a row of `most_bytes`. Nothing is cut: a text over its bound is refused.
use std::fmt;

use serde::Serialize;
use serde::ser::{
    SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple, SerializeTupleStruct,
    SerializeTupleVariant,
};

use crate::Reject;

/// All texts of one request together.
pub const TEXTS_MOST_BYTES: usize = 4 << 20;
/// All texts, numbers and lists of one request together.
pub const VALUES_MOST: usize = 1 << 20;
/// Array tasks that a request names by strides: each is looked up by itself.
pub const STRIDED_TASKS_MOST: usize = 1 << 18;
/// A text without a row of its own.
const TEXT_MOST_BYTES: usize = 64 << 10;
/// Names and comments, as in Slurm.
const NAME_MOST_BYTES: usize = 1024;
/// The kernel's bound for a path, and for one argument or variable of a program, its NUL included.
const PATH_MOST_BYTES: usize = 4096;
pub const ARGUMENT_MOST_BYTES: usize = (128 << 10) - 1;
/// All variables of one environment. The kernel gives a program at most 6 MB for these and its arguments.
pub const ENVIRONMENT_MOST_BYTES: usize = 4 << 20;

/// The bound of a text in this field.
fn most_bytes(field: &str) -> usize {
    match field {
        "name" | "user" | "group" | "account" | "qos" | "wckey" | "comment" | "admin_comment" | "submit_host"
        | "mcs_label" | "batch_features" | "features" | "preferred" | "power_words" | "gpu_bind_words"
        | "gpu_freq_words" | "layout_words" | "partition" | "partitions" | "reservation" | "reservations" | "to" => {
            NAME_MOST_BYTES
        }
        "work_dir" | "stdin" | "stdout" | "stderr" | "task_prolog" | "task_epilog" => PATH_MOST_BYTES,
        "arguments" | "command" => ARGUMENT_MOST_BYTES,
        // Every argument of the command, and the program of a `--wrap`.
        "submit_line" => 1 << 20,
        // Sets of CPUs and ranks, one number each in the worst case.
        "ranks" | "cpus" => 512 << 10,
        _ => TEXT_MOST_BYTES,
    }
}

/// The bound of a list in this field: far more than anybody needs, and few enough to compare each with each.
fn most_items(owner: &str, field: &str) -> usize {
    match (owner, field) {
        // Each job there is, or was, is held against them.
        ("HistoryQuery" | "JobFilter", "jobs") | ("AmendRequest", "runs") => crate::history::RUNS_MOST,
        ("HistoryQuery" | "JobFilter", _) => 1024,
        (_, "specs") => 128,
        (_, "gres_per_task" | "gres_total" | "limits" | "kinds" | "counts") => 64,
        (_, "gres" | "reservations" | "licenses" | "one_of" | "list") => 256,
        (_, "partitions" | "parts") => 1024,
        (_, "hosts") => 65_536,
        (_, "terms") => crate::dependency::TERMS_MOST,
        _ => VALUES_MOST,
    }
}

/// What a value holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextTally {
    pub text_bytes: usize,
    pub n_values: usize,
    n_strided_tasks: usize,
}

/// Why a value is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextFault {
    HoldsNul(&'static str),
    TooLong { field: &'static str, n_bytes: usize, most: usize },
    TooMuch(&'static str),
}

impl fmt::Display for TextFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TextFault::HoldsNul(field) => write!(out, "{field}: a NUL byte"),
            TextFault::TooLong { field, n_bytes, most } => {
                write!(out, "{field}: {n_bytes} bytes are too many, at most {most} can be taken")
            }
            TextFault::TooMuch(what) => write!(out, "the request has too many {what}"),
        }
    }
}

impl std::error::Error for TextFault {}

impl serde::ser::Error for TextFault {
    fn custom<T: fmt::Display>(_: T) -> Self {
        TextFault::TooMuch("values that cannot be written")
    }
}

impl From<TextFault> for Reject {
    fn from(fault: TextFault) -> Reject {
        match fault {
            TextFault::HoldsNul(_) => Reject::InvalidValue(fault.to_string()),
            TextFault::TooLong { .. } | TextFault::TooMuch(_) => Reject::TextTooLong(fault.to_string()),
        }
    }
}

/// What can be read from a caller: decoded, and walked over.
pub trait Judged: crate::codec::Decode + Serialize {}
impl<T: crate::codec::Decode + Serialize> Judged for T {}

/// Walks over the whole value. Stops at the first text or list that is over its bound.
pub fn judge<T: Serialize + ?Sized>(value: &T) -> Result<TextTally, TextFault> {
    let mut judge = TextJudge { field: "request", owner: "", strides: None, tally: TextTally::default() };
    value.serialize(&mut judge)?;
    Ok(judge.tally)
}

/// `NAME=value` entries, each ended by a NUL: a variable that the kernel gives no program is refused.
pub fn judge_environment(content: &[u8]) -> Result<(), TextFault> {
    const FIELD: &str = "environment";
    if content.len() > ENVIRONMENT_MOST_BYTES {
        let (n_bytes, most) = (content.len(), ENVIRONMENT_MOST_BYTES);
        return Err(TextFault::TooLong { field: FIELD, n_bytes, most });
    }
    // Most environments are shorter than one variable may be.
    if content.len() <= ARGUMENT_MOST_BYTES {
        return Ok(());
    }
    let longest = content.split(|byte| *byte == 0).map(<[u8]>::len).max().unwrap_or(0);
    match longest > ARGUMENT_MOST_BYTES {
        true => Err(TextFault::TooLong { field: FIELD, n_bytes: longest, most: ARGUMENT_MOST_BYTES }),
        false => Ok(()),
    }
}

struct TextJudge {
    /// The field whose value is at hand, or that holds it.
    field: &'static str,
    /// The struct that has the field.
    owner: &'static str,
    /// Inside a set of array tasks: first, last and stride of a run, as far as they were seen.
    strides: Option<(usize, [u64; 3])>,
    tally: TextTally,
}

impl TextJudge {
    fn value(&mut self) -> Result<(), TextFault> {
        self.tally.n_values += 1;
        if self.tally.n_values > VALUES_MOST { Err(TextFault::TooMuch("values")) } else { Ok(()) }
    }

    fn number(&mut self, number: u64) -> Result<(), TextFault> {
        if let Some((n_seen, run)) = &mut self.strides {
            run[*n_seen % 3] = number;
            *n_seen += 1;
            let [first, last, step] = *run;
            if *n_seen % 3 == 0 && step > 1 {
                self.tally.n_strided_tasks += (last.saturating_sub(first) / step) as usize;
                if self.tally.n_strided_tasks > STRIDED_TASKS_MOST {
                    return Err(TextFault::TooMuch("array tasks that are named by strides"));
                }
            }
        }
        self.value()
    }

    fn inside<T: Serialize + ?Sized>(&mut self, field: &'static str, value: &T) -> Result<(), TextFault> {
        let before = std::mem::replace(&mut self.field, field);
        value.serialize(&mut *self)?;
        self.field = before;
        Ok(())
    }
}

impl<'j> serde::Serializer for &'j mut TextJudge {
    type Ok = ();
    type Error = TextFault;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = StructJudge<'j>;
    type SerializeStructVariant = StructJudge<'j>;

    fn is_human_readable(&self) -> bool {
        // As the encoding of the log.
        false
    }

    fn serialize_str(self, text: &str) -> Result<(), TextFault> {
        self.value()?;
        let most = most_bytes(self.field);
        if text.len() > most {
            return Err(TextFault::TooLong { field: self.field, n_bytes: text.len(), most });
        }
        self.tally.text_bytes += text.len();
        if self.tally.text_bytes > TEXTS_MOST_BYTES {
            return Err(TextFault::TooMuch("texts"));
        }
        if text.as_bytes().contains(&0) { Err(TextFault::HoldsNul(self.field)) } else { Ok(()) }
    }

    fn serialize_bool(self, _: bool) -> Result<(), TextFault> {
        self.value()
    }

    fn serialize_i8(self, _: i8) -> Result<(), TextFault> {
        self.value()
    }

    fn serialize_i16(self, _: i16) -> Result<(), TextFault> {
        self.value()
    }

    fn serialize_i32(self, _: i32) -> Result<(), TextFault> {
        self.value()
    }

    fn serialize_i64(self, _: i64) -> Result<(), TextFault> {
        self.value()
    }

    fn serialize_u8(self, _: u8) -> Result<(), TextFault> {
        self.value()
    }

    fn serialize_u16(self, _: u16) -> Result<(), TextFault> {
        self.value()
    }

    fn serialize_u32(self, number: u32) -> Result<(), TextFault> {
        self.number(number.into())
    }

    fn serialize_u64(self, number: u64) -> Result<(), TextFault> {
        self.number(number)
    }

    fn serialize_f32(self, _: f32) -> Result<(), TextFault> {
        self.value()
    }

    fn serialize_f64(self, _: f64) -> Result<(), TextFault> {
        self.value()
    }

    fn serialize_char(self, letter: char) -> Result<(), TextFault> {
        self.serialize_str(letter.encode_utf8(&mut [0; 4]))
    }

    /// Scripts and environments have bounds of their own.
    fn serialize_bytes(self, _: &[u8]) -> Result<(), TextFault> {
        self.value()
    }

    fn serialize_none(self) -> Result<(), TextFault> {
        self.value()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), TextFault> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), TextFault> {
        self.value()
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), TextFault> {
        self.value()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Result<(), TextFault> {
        self.value()
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, name: &'static str, value: &T) -> Result<(), TextFault> {
        // A new array keeps its strides as they are; whoever names tasks of one has each of them looked up.
        if name != crate::ranges::TASK_SET || self.owner == "ArraySpec" {
            return value.serialize(self);
        }
        self.strides = Some((0, [0; 3]));
        value.serialize(&mut *self)?;
        self.strides = None;
        Ok(())
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Result<(), TextFault> {
        self.value()?;
        value.serialize(self)
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Self, TextFault> {
        if length.is_some_and(|length| length > most_items(self.owner, self.field)) {
            return Err(TextFault::TooMuch(self.field));
        }
        self.value().map(|()| self)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, TextFault> {
        self.value().map(|()| self)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, TextFault> {
        self.value().map(|()| self)
    }

    fn serialize_tuple_variant(self, _: &'static str, _: u32, _: &'static str, _: usize) -> Result<Self, TextFault> {
        self.value().map(|()| self)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self, TextFault> {
        self.value().map(|()| self)
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<StructJudge<'j>, TextFault> {
        self.value()?;
        let before = std::mem::replace(&mut self.owner, name);
        Ok(StructJudge { judge: self, before })
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<StructJudge<'j>, TextFault> {
        self.serialize_struct(name, 0)
    }
}

impl SerializeSeq for &mut TextJudge {
    type Ok = ();
    type Error = TextFault;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), TextFault> {
        value.serialize(&mut **self)
    }

    fn end(self) -> Result<(), TextFault> {
        Ok(())
    }
}

impl SerializeTuple for &mut TextJudge {
    type Ok = ();
    type Error = TextFault;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), TextFault> {
        value.serialize(&mut **self)
    }

    fn end(self) -> Result<(), TextFault> {
        Ok(())
    }
}

impl SerializeTupleStruct for &mut TextJudge {
    type Ok = ();
    type Error = TextFault;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), TextFault> {
        value.serialize(&mut **self)
    }

    fn end(self) -> Result<(), TextFault> {
        Ok(())
    }
}

impl SerializeTupleVariant for &mut TextJudge {
    type Ok = ();
    type Error = TextFault;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), TextFault> {
        value.serialize(&mut **self)
    }

    fn end(self) -> Result<(), TextFault> {
        Ok(())
    }
}

impl SerializeMap for &mut TextJudge {
    type Ok = ();
    type Error = TextFault;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), TextFault> {
        key.serialize(&mut **self)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), TextFault> {
        value.serialize(&mut **self)
    }

    fn end(self) -> Result<(), TextFault> {
        Ok(())
    }
}

/// The fields of one struct.
struct StructJudge<'j> {
    judge: &'j mut TextJudge,
    /// The struct around it.
    before: &'static str,
}

impl SerializeStruct for StructJudge<'_> {
    type Ok = ();
    type Error = TextFault;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, field: &'static str, value: &T) -> Result<(), TextFault> {
        self.judge.inside(field, value)
    }

    fn end(self) -> Result<(), TextFault> {
        self.judge.owner = self.before;
        Ok(())
    }
}

impl SerializeStructVariant for StructJudge<'_> {
    type Ok = ();
    type Error = TextFault;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, field: &'static str, value: &T) -> Result<(), TextFault> {
        self.judge.inside(field, value)
    }

    fn end(self) -> Result<(), TextFault> {
        self.judge.owner = self.before;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranges::TaskSet;
    use crate::{Command, JobId, JobRef, JobSpec};

    fn submission(change: impl FnOnce(&mut JobSpec)) -> Command {
        let mut spec = JobSpec { name: "job".into(), work_dir: "/".into(), ..JobSpec::default() };
        change(&mut spec);
        Command::Submit { spec: Box::new(spec), blobs: Vec::new() }
    }

    #[test]
    fn texts_over_their_bounds_are_named() {
        let fault = |change: fn(&mut JobSpec)| judge(&submission(change)).unwrap_err().to_string();
        assert_eq!(fault(|spec| spec.name = "x\0y".into()), "name: a NUL byte");
        assert_eq!(
            fault(|spec| spec.comment = "x".repeat(1025)),
            "comment: 1025 bytes are too many, at most 1024 can be taken"
        );
        assert!(fault(|spec| spec.burst_buffer = "x".repeat(TEXT_MOST_BYTES + 1)).starts_with("burst_buffer: "));
        assert!(fault(|spec| spec.arguments = vec!["\0".into()]).starts_with("arguments: "));
        let many = |spec: &mut JobSpec| spec.arguments = vec!["x".repeat(ARGUMENT_MOST_BYTES); 40];
        assert_eq!(fault(many), "the request has too many texts");
        assert_eq!(fault(|spec| spec.arguments = vec![String::new(); VALUES_MOST]), "the request has too many values");
        let gres = |spec: &mut JobSpec| spec.size.gres = vec![Default::default(); 257];
        assert_eq!(fault(gres), "the request has too many gres");
        let once =
            Command::Once { request: Default::default(), command: Box::new(submission(|spec| spec.qos = "\0".into())) };
        assert_eq!(judge(&once), Err(TextFault::HoldsNul("qos")));
        // A nested struct does not lend its bound to what comes behind it.
        assert!(judge(&submission(|spec| spec.arguments = vec!["x".repeat(ARGUMENT_MOST_BYTES); 3])).is_ok());
    }

    #[test]
    fn strides_cost_only_where_tasks_are_looked_up() {
        let tasks: TaskSet = crate::ranges::parse_array("0-4000000:2").unwrap().0;
        let array = crate::spec::ArraySpec { tasks: tasks.clone(), limit: None };
        judge(&submission(|spec| spec.array = Some(array))).unwrap();
        let named = JobRef { job: JobId(1), tasks: Some(tasks), component: None };
        let cancel = Command::Cancel { jobs: vec![named], hurry: false };
        assert!(matches!(judge(&cancel), Err(TextFault::TooMuch(_))));
        let some = crate::ranges::parse_array("0-1000:2,1002-4000000").unwrap().0;
        let named = JobRef { job: JobId(1), tasks: Some(some), component: None };
        judge(&Command::Hold { jobs: vec![named], by_user: true }).unwrap();
    }

    #[test]
    fn environments_fit_into_what_the_kernel_gives() {
        let environment = |length: usize| format!("A={}\0B=1\0", "x".repeat(length)).into_bytes();
        judge_environment(b"").unwrap();
        judge_environment(&environment(ARGUMENT_MOST_BYTES - 2)).unwrap();
        assert!(judge_environment(&environment(ARGUMENT_MOST_BYTES - 1)).is_err());
        assert!(judge_environment(&b"A=1\0".repeat(ENVIRONMENT_MOST_BYTES / 4 + 1)).is_err());
    }
}
