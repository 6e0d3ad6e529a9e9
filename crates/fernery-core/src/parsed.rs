//! Reads from the wire what is written there as text.

use serde::Deserializer;
use serde::de::{Error, Visitor};
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

/// Parses a text where it stands. A batch has thousands, and (unlike this) a `Cow` that is deserialized copies each.
pub(crate) fn parsed<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: FromStr<Err: fmt::Display>,
    D: Deserializer<'de>,
{
    struct Text<T>(PhantomData<T>);

    impl<T: FromStr<Err: fmt::Display>> Visitor<'_> for Text<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
            text.parse().map_err(E::custom)
        }
    }

    deserializer.deserialize_str(Text(PhantomData))
}
