//! Waits for a server that is starting, so that `fernery up &` and the next command can be pasted together.

use super::failure::{Failure, Outcome};
use super::screen::remark;
use super::server::read_line;
use crate::outgoing::Target;
use crate::serve::data_dir::URL_FILE;
use crate::serve::running::{self, HeldBy};
use fernery_engine::door;
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::time::Duration;

/// How long a server may take to start before a command gives up.
const START_WITHIN: Duration = Duration::from_secs(10);
/// How long a server may take from its call to its lock.
const APPEAR_WITHIN: Duration = Duration::from_millis(500);
/// A wait that people notice is told.
const TOLD_AFTER: Duration = Duration::from_millis(300);
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How long a server on this machine may take to accept a connection.
const CONNECT_WITHIN: Duration = Duration::from_millis(500);

/// The URL of the server of a data directory; `None`: there is none, and none is starting.
pub(super) fn url(data: &Path) -> Outcome<Option<String>> {
    let began = door::stop_watch();
    let mut told = false;
    loop {
        let url = read_line(&data.join(URL_FILE))?;
        let holder = running::holder(data).unwrap_or(HeldBy::Unknown);
        let waited = began.elapsed();
        match (url, holder) {
            (Some(url), HeldBy::Process(_) | HeldBy::Hidden | HeldBy::Unknown) => return Ok(Some(url)),
            // Of a second server on the same directory; or of one that was killed, and another is just being started.
            (Some(url), HeldBy::Nobody) if listens(&url) || waited > APPEAR_WITHIN => return Ok(Some(url)),
            (None, HeldBy::Nobody | HeldBy::Unknown) if waited > APPEAR_WITHIN => return Ok(None),
            (None, HeldBy::Process(_) | HeldBy::Hidden) if waited > START_WITHIN => {
                return Err(Failure::unreachable(format!(
                    "the server of {} is still starting after {} s; its log says what it does",
                    data.display(),
                    START_WITHIN.as_secs()
                )));
            }
            (None, HeldBy::Process(_) | HeldBy::Hidden) if !told && waited > TOLD_AFTER => {
                remark(&format!("waiting for the server of {} to start", data.display()));
                told = true;
            }
            _ => {}
        }
        running::moment(LOOK_EVERY);
    }
}

/// Whether something accepts connections there.
fn listens(url: &str) -> bool {
    let Ok(target) = Target::parse(url) else { return false };
    let addresses = (target.host.trim_matches(['[', ']']), target.port).to_socket_addrs();
    addresses.is_ok_and(|mut all| all.any(|at| TcpStream::connect_timeout(&at, CONNECT_WITHIN).is_ok()))
}
