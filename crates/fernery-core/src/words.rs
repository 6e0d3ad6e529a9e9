//! Closed sets of words: enums that the wire, the database and people spell alike.

/// Makes an enum whose variants are words, with `ALL`, `as_str`, `FromStr`, `Display` and serde's two halves. A text that is
/// none of the words is refused with all of them.
#[macro_export]
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$of:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name { $($(#[$of])* #[serde(rename = $word)] $variant),+ }

        impl $name {
            /// All of them, in the order of the type.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// As stored, sent and shown.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                match text {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(format!("expected one of {}", [$($word),+].join(", "))),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
