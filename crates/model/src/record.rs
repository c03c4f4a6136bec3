//! How persisted and transmitted values are declared: every field is named, has a default, and is left out when default.
//! So old logs load in new binaries, new fields cost nothing in old records, and both stay small.

/// Declares a struct whose encoding may gain and lose fields over releases. Fields that it `hides` are secrets: they are encoded
/// like the others, and print as nothing of themselves.
#[macro_export]
macro_rules! record {
    ($(
        $(#[$meta:meta])*
        pub struct $name:ident $(hides($($hidden:ident),+))? {
            $($(#[$field_meta:meta])* pub $field:ident : $kind:ty),* $(,)?
        }
    )+) => {
        $(
            $(#[$meta])*
            #[derive(Clone, Default, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
            #[serde(default)]
            pub struct $name {
                $(
                    $(#[$field_meta])*
                    #[serde(skip_serializing_if = "is_default")]
                    pub $field: $kind,
                )*
            }

            impl ::std::fmt::Debug for $name {
                fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                    const HIDES: &[&str] = &[$($(stringify!($hidden)),+)?];
                    let mut shown = f.debug_struct(stringify!($name));
                    $(
                        match HIDES.contains(&stringify!($field)) {
                            true => shown.field(stringify!($field), &::std::format_args!("{}", $crate::secret::HIDDEN)),
                            false => shown.field(stringify!($field), &self.$field),
                        };
                    )*
                    shown.finish()
                }
            }
        )+
        fn is_default<T: Default + PartialEq>(value: &T) -> bool {
            *value == T::default()
        }
    };
}
