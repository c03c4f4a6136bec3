//! Decoding within an allowance of memory: each value pays for the room it takes, before the next one is read.
//!
//! A byte may stand for a text of 24 bytes or a record of thousands. What a value is decoded into is known by the type that
//! its visitor makes, so no noun needs to know of this.
use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor};

/// What the allocator keeps beside a text or list.
const ALLOCATION_BYTES: usize = 16;

/// How much memory values may still take.
pub(crate) struct Allowance(Cell<usize>);

impl Allowance {
    pub(crate) fn of(n_bytes: usize) -> Allowance {
        Allowance(Cell::new(n_bytes))
    }

    fn spend<E: Error>(&self, n_bytes: usize) -> Result<(), E> {
        let left = self.0.get().checked_sub(n_bytes);
        self.0.set(left.ok_or_else(|| E::custom("it takes far more memory than it has bytes"))?);
        Ok(())
    }
}

/// A deserializer, visitor, access or seed whose values are paid for.
pub(crate) struct Metered<'a, T> {
    inner: T,
    allowance: &'a Allowance,
}

impl<'a, T> Metered<'a, T> {
    pub(crate) fn new(inner: T, allowance: &'a Allowance) -> Metered<'a, T> {
        Metered { inner, allowance }
    }

    fn wrap<U>(&self, inner: U) -> Metered<'a, U> {
        Metered::new(inner, self.allowance)
    }
}

macro_rules! paid {
    ($($method:ident($($name:ident: $type:ty),*)),* $(,)?) => {
        $(
            fn $method<V: Visitor<'de>>(self $(, $name: $type)*, visitor: V) -> Result<V::Value, D::Error> {
                self.allowance.spend(size_of::<V::Value>())?;
                let visitor = self.wrap(visitor);
                self.inner.$method($($name,)* visitor)
            }
        )*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Metered<'_, D> {
    type Error = D::Error;

    paid! {
        deserialize_any(), deserialize_bool(), deserialize_i8(), deserialize_i16(), deserialize_i32(),
        deserialize_i64(), deserialize_i128(), deserialize_u8(), deserialize_u16(), deserialize_u32(),
        deserialize_u64(), deserialize_u128(), deserialize_f32(), deserialize_f64(), deserialize_char(),
        deserialize_str(), deserialize_string(), deserialize_bytes(), deserialize_byte_buf(), deserialize_unit(),
        deserialize_unit_struct(name: &'static str), deserialize_seq(), deserialize_tuple(n_items: usize),
        deserialize_tuple_struct(name: &'static str, n_items: usize), deserialize_map(),
        deserialize_struct(name: &'static str, fields: &'static [&'static str]),
        deserialize_enum(name: &'static str, variants: &'static [&'static str]),
    }

    /// Pays when it is known whether there is anything: what is inside pays for itself.
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let visitor = self.wrap(visitor);
        self.inner.deserialize_option(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        let visitor = self.wrap(visitor);
        self.inner.deserialize_newtype_struct(name, visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_identifier(visitor)
    }

    /// Nothing of it stays, whoever asks.
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_ignored_any(visitor)
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

macro_rules! handed_on {
    ($($method:ident: $type:ty),* $(,)?) => {
        $(
            fn $method<E: Error>(self, value: $type) -> Result<V::Value, E> {
                self.inner.$method(value)
            }
        )*
    };
}

macro_rules! paid_by_length {
    ($($method:ident: $type:ty),* $(,)?) => {
        $(
            fn $method<E: Error>(self, value: $type) -> Result<V::Value, E> {
                self.allowance.spend(value.len() + ALLOCATION_BYTES)?;
                self.inner.$method(value)
            }
        )*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Metered<'_, V> {
    type Value = V::Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(out)
    }

    handed_on! {
        visit_bool: bool, visit_i8: i8, visit_i16: i16, visit_i32: i32, visit_i64: i64, visit_i128: i128,
        visit_u8: u8, visit_u16: u16, visit_u32: u32, visit_u64: u64, visit_u128: u128,
        visit_f32: f32, visit_f64: f64, visit_char: char,
    }

    paid_by_length! {
        visit_str: &str, visit_borrowed_str: &'de str, visit_string: String,
        visit_bytes: &[u8], visit_borrowed_bytes: &'de [u8], visit_byte_buf: Vec<u8>,
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.allowance.spend(size_of::<V::Value>())?;
        self.inner.visit_none()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        let deserializer = self.wrap(deserializer);
        self.inner.visit_some(deserializer)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        let deserializer = self.wrap(deserializer);
        self.inner.visit_newtype_struct(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<V::Value, A::Error> {
        self.allowance.spend(ALLOCATION_BYTES)?;
        let items = self.wrap(items);
        self.inner.visit_seq(items)
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<V::Value, A::Error> {
        self.allowance.spend(ALLOCATION_BYTES)?;
        let entries = self.wrap(entries);
        self.inner.visit_map(entries)
    }

    fn visit_enum<A: EnumAccess<'de>>(self, variant: A) -> Result<V::Value, A::Error> {
        let variant = self.wrap(variant);
        self.inner.visit_enum(variant)
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Metered<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        let deserializer = self.wrap(deserializer);
        self.inner.deserialize(deserializer)
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Metered<'_, A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        let seed = self.wrap(seed);
        self.inner.next_element_seed(seed)
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Metered<'_, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        let seed = self.wrap(seed);
        self.inner.next_key_seed(seed)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        let seed = self.wrap(seed);
        self.inner.next_value_seed(seed)
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, 'a, A: EnumAccess<'de>> EnumAccess<'de> for Metered<'a, A> {
    type Error = A::Error;
    type Variant = Metered<'a, A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self::Variant), A::Error> {
        let allowance = self.allowance;
        let (name, content) = self.inner.variant_seed(seed)?;
        Ok((name, Metered::new(content, allowance)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Metered<'_, A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.inner.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        let seed = self.wrap(seed);
        self.inner.newtype_variant_seed(seed)
    }

    fn tuple_variant<V: Visitor<'de>>(self, n_items: usize, visitor: V) -> Result<V::Value, A::Error> {
        let visitor = self.wrap(visitor);
        self.inner.tuple_variant(n_items, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        let visitor = self.wrap(visitor);
        self.inner.struct_variant(fields, visitor)
    }
}

#[cfg(test)]
mod tests {
    use serde::de::IgnoredAny;
    use serde::{Deserialize, Serialize};

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    struct Wide {
        numbers: [u64; 16],
        names: Vec<String>,
        inner: Option<Box<Wide>>,
        kinds: Vec<Kind>,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    enum Kind {
        Nothing,
        Named(String),
        Numbers { list: Vec<u16>, last: Option<u8> },
    }

    fn list_of(item: u8, n_items: u32) -> Vec<u8> {
        [&[0xdd][..], &n_items.to_be_bytes(), &vec![item; n_items as usize]].concat()
    }

    #[test]
    fn honest_values_read_the_same() {
        let inner = Wide { names: vec!["n1".into(); 300], ..Wide::default() };
        let kinds = vec![
            Kind::Nothing,
            Kind::Named("a".repeat(70_000)),
            Kind::Numbers { list: vec![7; 5000], last: Some(3) },
            Kind::Numbers { list: vec![], last: None },
        ];
        let value = Wide { numbers: [9; 16], names: vec![], inner: Some(inner.into()), kinds };
        assert_eq!(crate::decode_sent::<Wide>(&crate::encode(&value).unwrap()).unwrap(), value);
        assert_eq!(crate::decode_sent::<Wide>(&crate::encode_compact(&value).unwrap()).unwrap(), value);
        let names: Vec<String> = (0..100_000).map(|number| format!("n{number}")).collect();
        assert_eq!(crate::decode_sent::<Vec<String>>(&crate::encode(&names).unwrap()).unwrap(), names);
    }

    #[test]
    fn bytes_that_stand_for_much_are_refused() {
        let refused = |said: String| assert!(said.contains("far more memory"), "{said}");
        refused(crate::decode_sent::<Vec<String>>(&list_of(0xa0, 1 << 19)).unwrap_err().to_string());
        refused(crate::decode_sent::<Vec<Wide>>(&list_of(0x80, 1 << 16)).unwrap_err().to_string());
        refused(crate::decode_sent::<Vec<Box<Wide>>>(&list_of(0x90, 1 << 16)).unwrap_err().to_string());
        refused(crate::decode_sent::<Vec<Option<Wide>>>(&list_of(0xc0, 1 << 16)).unwrap_err().to_string());
        refused(crate::decode_sent::<Vec<Vec<u8>>>(&list_of(0x90, 1 << 17)).unwrap_err().to_string());
        // What nobody reads takes nothing.
        assert!(crate::decode_sent::<IgnoredAny>(&list_of(0xa0, 1 << 19)).is_ok());
        assert!(crate::decode_sent::<Vec<bool>>(&list_of(0xc2, 1 << 19)).is_ok());
    }
}
