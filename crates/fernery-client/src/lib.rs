//! Wire types and client of Fernery's HTTP interface.

pub mod wire;
