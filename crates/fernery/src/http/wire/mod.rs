//! From bytes to a call and back: connections, heads, bodies, and the path of a request to its answer.

pub mod accept;
pub mod answer;
pub(super) mod aside;
pub mod bare;
pub mod body;
pub mod cursor;
pub mod framing;
pub mod guards;
pub mod json;
pub mod json_scan;
pub mod paced;
pub mod query;
pub mod tls;
