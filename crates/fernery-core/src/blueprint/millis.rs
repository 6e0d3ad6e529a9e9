//! Durations as whole milliseconds, in stored JSON.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::time::Duration;

pub(crate) use crate::calendar::duration::millis as of;

pub(crate) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(of(*duration))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    u64::deserialize(deserializer).map(Duration::from_millis)
}

pub(crate) mod option {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(
        duration: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        duration.map(of).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::deserialize(deserializer)?.map(Duration::from_millis))
    }
}

pub(crate) mod options {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(
        durations: &[Option<Duration>; 5],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        durations.map(|duration| duration.map(of)).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<[Option<Duration>; 5], D::Error> {
        let millis = <[Option<u64>; 5]>::deserialize(deserializer)?;
        Ok(millis.map(|ms| ms.map(Duration::from_millis)))
    }
}
