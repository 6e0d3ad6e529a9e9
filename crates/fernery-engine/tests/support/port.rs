//! Loopback ports for servers that start later, or again, at the same address.

use std::fs::File;
use std::net::TcpListener;

/// The system gives ports of its own range (from 32,768) to outgoing connections and to whoever asks for any port. Such a
/// port may be taken before a server binds it, or while that server is down. `scripts/keep-services` takes from 20,000.
const FIRST: u16 = 10_000;
const COUNT: u16 = 10_000;

/// A port that no other test takes while this lives.
pub(crate) struct Port {
    number: u16,
    /// Tests are processes of their own: this keeps the others away also while nothing listens.
    _lock: File,
}

impl Port {
    pub(crate) fn reserve() -> Self {
        let locks =
            std::env::temp_dir().join(format!("fernery-test-ports-{}", rustix::process::geteuid().as_raw()));
        std::fs::create_dir_all(&locks).expect("a folder for locks");
        let start = (std::process::id() % u32::from(COUNT)) as u16;
        (0..COUNT)
            .map(|n| FIRST + (start + n) % COUNT)
            .find_map(|number| {
                let lock = File::create(locks.join(number.to_string())).expect("a lock file");
                lock.try_lock().ok()?;
                TcpListener::bind(("127.0.0.1", number)).ok()?;
                Some(Self { number, _lock: lock })
            })
            .expect("a free port")
    }

    #[allow(dead_code, reason = "shared with other tests")]
    pub(crate) fn number(&self) -> u16 {
        self.number
    }

    #[allow(dead_code, reason = "shared with other tests")]
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.number)
    }
}
