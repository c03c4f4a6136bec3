//! Makes values of any readable type from the type's own description, with one field set to something hostile.
//!
//! `serde` tells a deserializer the fields of each struct and the variants of each enum. [`discover`] follows them all and
//! lists every [`Place`] where a plain value stands. [`make`] builds the type with a [`Poison`] at one such place and
//! ordinary values elsewhere. A field that is added tomorrow is found without a change here.
use std::cell::Cell;
use std::collections::{BTreeSet, VecDeque};
use std::fmt;

use serde::de::value::Error;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};

/// One step from a value into a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Inward {
    Field(&'static str),
    Variant(&'static str),
    /// The content of an option.
    Present,
    /// An element of a list or tuple.
    Item(usize),
    Key,
    Content,
}

/// Where in a value something stands.
pub type Place = Vec<Inward>;

/// What a plain value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PlainKind {
    Truth,
    Signed,
    Unsigned,
    Float,
    Text,
    Bytes,
    /// A list, which may have very many elements.
    Length,
    /// A variant that holds nothing.
    Nothing,
    /// Whether an option that no place leads into has content.
    Presence,
    /// Which variant an enum has that no place leads into, by its number.
    Choice,
}

/// A plain value that a test chooses.
#[derive(Clone, Debug, PartialEq)]
pub enum Plain {
    Truth(bool),
    Number(i128),
    Float(f64),
    Text(String),
    Bytes(Vec<u8>),
    /// So many elements, all alike.
    Length(usize),
    Nothing,
}

/// A place and what is put there.
#[derive(Clone, Debug)]
pub struct Poison {
    pub place: Place,
    pub plain: Plain,
}

impl fmt::Display for Poison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.place {
            match step {
                Inward::Field(name) | Inward::Variant(name) => write!(f, ".{name}")?,
                Inward::Present => f.write_str("?")?,
                Inward::Item(index) => write!(f, "[{index}]")?,
                Inward::Key => f.write_str(".key")?,
                Inward::Content => f.write_str(".content")?,
            }
        }
        let plain = format!("{:?}", self.plain);
        write!(f, " = {}", plain.chars().take(60).collect::<String>())
    }
}

/// Ordinary values: what stands where no poison does. None takes zero, an empty text, and so on.
pub type Ordinary<'a> = &'a dyn Fn(&[Inward], PlainKind) -> Option<Plain>;

/// A type inside itself is followed so often.
const NESTED_MAX: usize = 2;

/// Every place of `T` where a plain value stands, and its kind, in the order of the declaration.
pub fn discover<T: DeserializeOwned>(ordinary: Ordinary) -> Vec<(Place, PlainKind)> {
    let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
    let mut waiting = VecDeque::from([Place::new()]);
    let mut opened = BTreeSet::new();
    while let Some(open) = waiting.pop_front() {
        let mut cook = Cook::new(&open, None, ordinary);
        // What cannot be made this way may still show where its parts are.
        let _ = T::deserialize(&mut cook);
        for (place, kind) in cook.plains {
            if seen.insert(place.clone()) {
                found.push((place, kind));
            }
        }
        for place in cook.choices {
            if opened.insert(place.clone()) {
                waiting.push_back(place);
            }
        }
    }
    found
}

/// The type with the poison in it and everything on the way to it present; None where the type itself refuses it.
pub fn make<T: DeserializeOwned>(poison: &Poison, ordinary: Ordinary) -> Option<T> {
    T::deserialize(&mut Cook::new(&poison.place, Some(&poison.plain), ordinary)).ok()
}

/// The type with ordinary values only, but everything on the way to `place` present.
pub fn make_ordinary<T: DeserializeOwned>(place: &[Inward], ordinary: Ordinary) -> Option<T> {
    T::deserialize(&mut Cook::new(place, None, ordinary)).ok()
}

/// A value of the type as the bytes choose it: each byte, or few of them, decides one thing. They may run out.
pub fn draw<T: DeserializeOwned>(entropy: &mut &[u8]) -> Option<T> {
    let left = Cell::new(*entropy);
    let drawn = {
        let byte = || {
            let (first, rest) = left.get().split_first()?;
            left.set(rest);
            Some(*first)
        };
        let draw_plain = |place: &[Inward], kind: PlainKind| draw_plain(place, kind, &byte);
        T::deserialize(&mut Cook::new(&[], None, &draw_plain)).ok()
    };
    *entropy = left.get();
    drawn
}

/// Deeper values are plain: a type inside itself must come to an end.
const DRAWN_DEPTH_MAX: usize = 40;

fn draw_plain(place: &[Inward], kind: PlainKind, byte: &dyn Fn() -> Option<u8>) -> Option<Plain> {
    if place.len() > DRAWN_DEPTH_MAX {
        return None;
    }
    let choice = byte()?;
    let known = poisons(kind);
    Some(match kind {
        PlainKind::Presence => Plain::Truth(choice % 4 == 0),
        PlainKind::Choice => Plain::Number(choice.into()),
        PlainKind::Length if choice < 250 => Plain::Length(usize::from(choice % 4)),
        PlainKind::Text if choice < 128 => {
            let letters = std::iter::from_fn(byte).take(usize::from(choice % 16));
            Plain::Text(String::from_utf8_lossy(&letters.collect::<Vec<u8>>()).into_owned())
        }
        PlainKind::Signed | PlainKind::Unsigned if choice < 200 => Plain::Number(i128::from(choice % 20)),
        PlainKind::Float if choice < 200 => Plain::Float(f64::from(choice)),
        _ => known.get(usize::from(choice) % known.len().max(1))?.clone(),
    })
}

/// What is hostile about values of this kind.
pub fn poisons(kind: PlainKind) -> Vec<Plain> {
    let numbers = |values: &[i128]| values.iter().map(|value| Plain::Number(*value)).collect();
    match kind {
        PlainKind::Truth => vec![Plain::Truth(true), Plain::Truth(false)],
        PlainKind::Signed => numbers(&[i128::from(i64::MIN), -1, 0, i128::from(i32::MAX) + 1, i128::from(i64::MAX)]),
        PlainKind::Unsigned => numbers(&[0, 1, i128::from(u16::MAX), i128::from(u32::MAX), i128::from(u64::MAX)]),
        PlainKind::Float => [f64::NAN, f64::INFINITY, f64::MIN, -0.0].into_iter().map(Plain::Float).collect(),
        PlainKind::Text => TEXTS
            .iter()
            .map(|text| (*text).to_owned())
            .chain(["a".repeat(70_000), "(".repeat(5_000), "[1-9]".repeat(12)])
            .map(Plain::Text)
            .collect(),
        PlainKind::Bytes => vec![Plain::Bytes(Vec::new()), Plain::Bytes(vec![0xff; 100_000])],
        PlainKind::Nothing => vec![Plain::Nothing],
        // Places lead there instead.
        PlainKind::Presence | PlainKind::Choice => Vec::new(),
        PlainKind::Length => [0, 2, 20_000].into_iter().map(Plain::Length).collect(),
    }
}

/// The hostile values of a place, beginning with the one whose turn it is; another place or seed begins elsewhere.
pub fn poisons_in_turn(place: &[Inward], kind: PlainKind, seed: u64) -> Vec<Plain> {
    let mut all = poisons(kind);
    let first = (place_number(place).wrapping_add(seed) % all.len().max(1) as u64) as usize;
    all.rotate_left(first);
    all
}

/// A number that is the same for a place in every run.
pub fn place_number(place: &[Inward]) -> u64 {
    let written = format!("{place:?}");
    written.bytes().fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// No NUL, a terminal's orders, ways out of a directory, shells' words, and expressions that are cheap to write.
const TEXTS: &[&str] = &[
    "",
    "a\0b",
    "\u{1b}]0;owned\u{7}\r\n\u{202e}forged",
    "../../../../etc/shadow",
    "/proc/self/environ",
    "$(id);`id`|&%n%s%x",
    "n[1-999999999]",
    "0-4000000:7,1-4000000:11,2-4000000:13",
    "%999999999j",
    "-1",
    "4294967296",
    "root",
];

struct Cook<'a> {
    open: &'a [Inward],
    poison: Option<&'a Plain>,
    ordinary: Ordinary<'a>,
    here: Place,
    /// The named types around the present place.
    inside: Vec<&'static str>,
    plains: Vec<(Place, PlainKind)>,
    choices: Vec<Place>,
}

impl<'a> Cook<'a> {
    fn new(open: &'a [Inward], poison: Option<&'a Plain>, ordinary: Ordinary<'a>) -> Cook<'a> {
        Cook { open, poison, ordinary, here: Vec::new(), inside: Vec::new(), plains: Vec::new(), choices: Vec::new() }
    }

    /// The step that the open place takes from here, if it leads through here.
    fn next_open(&self) -> Option<Inward> {
        let rest = self.open.strip_prefix(self.here.as_slice())?;
        rest.first().copied()
    }

    fn choice(&mut self, step: Inward) {
        let is_deep =
            self.inside.iter().any(|name| self.inside.iter().filter(|other| *other == name).count() > NESTED_MAX);
        if !is_deep {
            let mut place = self.here.clone();
            place.push(step);
            self.choices.push(place);
        }
    }

    fn plain(&mut self, kind: PlainKind) -> Option<Plain> {
        self.plains.push((self.here.clone(), kind));
        if let Some(poison) = self.poison
            && self.here == self.open
        {
            return Some(poison.clone());
        }
        (self.ordinary)(&self.here, kind)
    }

    fn within<R>(&mut self, step: Inward, work: impl FnOnce(&mut Self) -> R) -> R {
        self.here.push(step);
        let result = work(self);
        self.here.pop();
        result
    }

    fn number(&mut self, kind: PlainKind) -> Result<i128, Error> {
        match self.plain(kind) {
            Some(Plain::Number(number)) => Ok(number),
            None => Ok(0),
            Some(other) => Err(Error::custom(format!("{other:?} is no number"))),
        }
    }

    fn text(&mut self) -> Result<String, Error> {
        match self.plain(PlainKind::Text) {
            Some(Plain::Text(text)) => Ok(text),
            None => Ok(String::new()),
            Some(other) => Err(Error::custom(format!("{other:?} is no text"))),
        }
    }

    fn bytes(&mut self) -> Result<Vec<u8>, Error> {
        match self.plain(PlainKind::Bytes) {
            Some(Plain::Bytes(bytes)) => Ok(bytes),
            None => Ok(Vec::new()),
            Some(other) => Err(Error::custom(format!("{other:?} is no byte string"))),
        }
    }

    /// How many elements the list here has: those on the way to the open place, or as the poison says.
    fn length(&mut self) -> usize {
        self.choice(Inward::Item(0));
        match self.plain(PlainKind::Length) {
            Some(Plain::Length(length)) => length,
            _ => usize::from(self.next_open().is_some()),
        }
    }

    fn in_type<R>(&mut self, name: &'static str, work: impl FnOnce(&mut Self) -> R) -> R {
        self.inside.push(name);
        let result = work(self);
        self.inside.pop();
        result
    }
}

macro_rules! numbers {
    ($($method:ident $visit:ident $kind:ident $type:ty),*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            let number = self.number(PlainKind::$kind)?;
            visitor.$visit(number.clamp(<$type>::MIN as i128, <$type>::MAX as i128) as $type)
        }
    )*};
}

impl<'de> Deserializer<'de> for &mut Cook<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("the type does not say what it is"))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let is_true = matches!(self.plain(PlainKind::Truth), Some(Plain::Truth(true)));
        visitor.visit_bool(is_true)
    }

    numbers! {
        deserialize_i8 visit_i8 Signed i8, deserialize_i16 visit_i16 Signed i16,
        deserialize_i32 visit_i32 Signed i32, deserialize_i64 visit_i64 Signed i64,
        deserialize_u8 visit_u8 Unsigned u8, deserialize_u16 visit_u16 Unsigned u16,
        deserialize_u32 visit_u32 Unsigned u32, deserialize_u64 visit_u64 Unsigned u64
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.plain(PlainKind::Float) {
            Some(Plain::Float(number)) => visitor.visit_f64(number),
            _ => visitor.visit_f64(0.0),
        }
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let text = self.text()?;
        visitor.visit_char(text.chars().next().unwrap_or('x'))
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_string(visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let text = self.text()?;
        visitor.visit_string(text)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_string(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let bytes = self.bytes()?;
        visitor.visit_bytes(&bytes)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let bytes = self.bytes()?;
        visitor.visit_byte_buf(bytes)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.choice(Inward::Present);
        let is_present = self.next_open() == Some(Inward::Present)
            || (self.ordinary)(&self.here, PlainKind::Presence) == Some(Plain::Truth(true));
        match is_present {
            true => self.within(Inward::Present, |cook| visitor.visit_some(cook)),
            false => visitor.visit_none(),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, Error> {
        self.in_type(name, |cook| visitor.visit_newtype_struct(cook))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let n_left = self.length();
        visitor.visit_seq(Elements { cook: self, next: 0, end: n_left, alike: true })
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, n: usize, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(Elements { cook: self, next: 0, end: n, alike: false })
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        n: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.in_type(name, |cook| cook.deserialize_tuple(n, visitor))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.choice(Inward::Key);
        self.choice(Inward::Content);
        let n_left = match (self.ordinary)(&self.here, PlainKind::Length) {
            Some(Plain::Length(length)) => length,
            _ => usize::from(self.next_open().is_some()),
        };
        visitor.visit_map(Pairs { cook: self, n_left })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.in_type(name, |cook| visitor.visit_map(Fields { cook, fields, next: 0 }))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.in_type(name, |cook| {
            variants.iter().for_each(|variant| cook.choice(Inward::Variant(variant)));
            let variant = match cook.next_open() {
                Some(Inward::Variant(variant)) => variant,
                _ => {
                    let chosen = match (cook.ordinary)(&cook.here, PlainKind::Choice) {
                        Some(Plain::Number(number)) => number.rem_euclid(variants.len().max(1) as i128) as usize,
                        _ => 0,
                    };
                    variants.get(chosen).copied().ok_or_else(|| Error::custom("an enum without variants"))?
                }
            };
            visitor.visit_enum(Chosen { cook, variant })
        })
    }
}

struct Elements<'c, 'a> {
    cook: &'c mut Cook<'a>,
    next: usize,
    end: usize,
    /// The elements of a list are all at the place of its first.
    alike: bool,
}

impl<'de> SeqAccess<'de> for Elements<'_, '_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        if self.next == self.end {
            return Ok(None);
        }
        let index = if self.alike { 0 } else { self.next };
        self.next += 1;
        self.cook.within(Inward::Item(index), |cook| seed.deserialize(cook)).map(Some)
    }
}

struct Pairs<'c, 'a> {
    cook: &'c mut Cook<'a>,
    n_left: usize,
}

impl<'de> MapAccess<'de> for Pairs<'_, '_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        if self.n_left == 0 {
            return Ok(None);
        }
        self.n_left -= 1;
        self.cook.within(Inward::Key, |cook| seed.deserialize(cook)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        self.cook.within(Inward::Content, |cook| seed.deserialize(cook))
    }
}

struct Fields<'c, 'a> {
    cook: &'c mut Cook<'a>,
    fields: &'static [&'static str],
    next: usize,
}

impl<'de> MapAccess<'de> for Fields<'_, '_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let Some(field) = self.fields.get(self.next) else { return Ok(None) };
        seed.deserialize(IntoDeserializer::<Error>::into_deserializer(*field)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let field = self.fields[self.next];
        self.next += 1;
        self.cook.within(Inward::Field(field), |cook| seed.deserialize(cook))
    }
}

struct Chosen<'c, 'a> {
    cook: &'c mut Cook<'a>,
    variant: &'static str,
}

impl<'de> EnumAccess<'de> for Chosen<'_, '_> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Error> {
        let variant = seed.deserialize(IntoDeserializer::<Error>::into_deserializer(self.variant))?;
        Ok((variant, self))
    }
}

impl<'de> VariantAccess<'de> for Chosen<'_, '_> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        self.cook.within(Inward::Variant(self.variant), |cook| cook.plain(PlainKind::Nothing));
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        self.cook.within(Inward::Variant(self.variant), |cook| seed.deserialize(cook))
    }

    fn tuple_variant<V: Visitor<'de>>(self, n: usize, visitor: V) -> Result<V::Value, Error> {
        self.cook.within(Inward::Variant(self.variant), |cook| cook.deserialize_tuple(n, visitor))
    }

    fn struct_variant<V: Visitor<'de>>(self, fields: &'static [&'static str], visitor: V) -> Result<V::Value, Error> {
        self.cook.within(Inward::Variant(self.variant), |cook| visitor.visit_map(Fields { cook, fields, next: 0 }))
    }
}

#[cfg(test)]
mod tests {
    use model::{Command, JobSpec};

    use super::*;

    fn nothing(_: &[Inward], _: PlainKind) -> Option<Plain> {
        None
    }

    #[test]
    fn discovery_finds_every_field_of_a_submission() {
        let found = discover::<JobSpec>(&nothing);
        let has = |words: &str| {
            found.iter().any(|(place, _)| {
                Poison { place: place.clone(), plain: Plain::Truth(true) }.to_string().starts_with(words)
            })
        };
        for field in
            [".uid", ".comment", ".kind.Run.environment[3]", ".array?.tasks", ".size.gres[0].name", ".mail?.to"]
        {
            assert!(has(field), "{field} is not among {} places", found.len());
        }
    }

    #[test]
    fn poison_stands_where_it_was_put_and_nowhere_else() {
        let found = discover::<Command>(&nothing);
        let comment = found.iter().find(|(place, _)| {
            place.starts_with(&[Inward::Variant("Submit")]) && place.ends_with(&[Inward::Field("comment")])
        });
        let (place, kind) = comment.expect("a submission has a comment").clone();
        assert_eq!(kind, PlainKind::Text);
        let poison = Poison { place, plain: Plain::Text("poison".into()) };
        let Some(Command::Submit { spec, .. }) = make(&poison, &nothing) else { panic!("no submission") };
        assert_eq!(*spec, JobSpec { comment: "poison".into(), ..spec.as_ref().clone() });
        assert_eq!(spec.name, "");
        assert_eq!(spec.uid, 0);
    }
}
