//! How persisted and transmitted values are declared: every field is named, has a default, and is left out when default.
//! So old logs load in new binaries, new fields cost nothing in old records, and both stay small.

/// Declares a struct whose encoding may gain and lose fields over releases.
#[macro_export]
macro_rules! record {
    ($($(#[$meta:meta])* pub struct $name:ident { $($(#[$field_meta:meta])* pub $field:ident : $kind:ty),* $(,)? })+) => {
        $(
            $(#[$meta])*
            #[derive(Clone, Debug, Default, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
            #[serde(default)]
            pub struct $name {
                $(
                    $(#[$field_meta])*
                    #[serde(skip_serializing_if = "is_default")]
                    pub $field: $kind,
                )*
            }
        )+
        fn is_default<T: Default + PartialEq>(value: &T) -> bool {
            *value == T::default()
        }
    };
}
