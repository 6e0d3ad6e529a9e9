//! Sign-ins of people at the pages: one-time links and sessions.

use super::schema;
use fernery_core::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A link that signs one browser in, once. Its secret is shown here and never again.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SignInLink {
    /// The path of the link, with its secret.
    pub path: String,
    /// The host name of the pages for browsers on the server's own machine. Browsers elsewhere use the server's own name.
    pub host: String,
    /// Until when it works.
    #[schemars(with = "schema::Instant")]
    pub expires_at: Timestamp,
}

/// A browser that is signed in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionInfo {
    /// Its public part.
    pub session_id: String,
    /// The token that it stands for: it may do what that token may, as long as that token works.
    pub token_id: String,
    /// When its person signed in.
    #[schemars(with = "schema::Instant")]
    pub created_at: Timestamp,
    /// When it ends.
    #[schemars(with = "schema::Instant")]
    pub expires_at: Timestamp,
}

/// The browsers that are signed in, newest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SessionList {
    /// At most 500 of them.
    pub sessions: Vec<SessionInfo>,
}
