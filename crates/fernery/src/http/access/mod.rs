//! Who may come in, and how often.

pub mod auth;
pub mod rate;
pub mod repeats;
pub mod token;
pub mod token_files;
