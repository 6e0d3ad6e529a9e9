//! What the suites share: the backends, the model they are held against, single verbs, and the dump of a whole store.
#![allow(dead_code, unused_imports, reason = "each test binary uses its part")]

pub(crate) mod backend;
pub(crate) mod cluster;
pub(crate) mod consistency;
pub(crate) mod dump;
pub(crate) mod fresh_database;
pub(crate) mod model;
pub(crate) mod port;
pub(crate) mod postgres;
pub(crate) mod proxy;
pub(crate) mod race;
pub(crate) mod seed;
pub(crate) mod seeded;
pub(crate) mod singly;
