//! Pages of lists that go from the newest down.

use crate::http::problem::Refused;
use crate::http::wire::answer::Call;
use crate::http::wire::cursor;
use fernery_engine::pipeline::reading::Below;

/// Where a page starts, and how many rows it has.
pub(in crate::http) struct Place {
    pub(in crate::http) below: Below,
    rows: usize,
    list: String,
}

impl Place {
    /// The place in the list `list` that the query names.
    pub(in crate::http) fn read(call: &Call, list: String) -> Result<Self, Refused> {
        let below = match call.query.text("cursor") {
            None => Below::newest(),
            Some(text) => cursor::read::<Below>(text, &list)?,
        };
        // The checksum is no secret, so anybody can make a cursor; NUL, which no database stores, must not come through.
        if below.id.contains('\0') {
            return Err(cursor::foreign());
        }
        Ok(Self { below, rows: call.page_rows()?, list })
    }

    /// One row more than the page has; it shows whether there is a next page.
    pub(in crate::http) fn rows_and_one(&self) -> i64 {
        self.rows as i64 + 1
    }

    /// The rows of the page.
    pub(in crate::http) fn rows(&self) -> i64 {
        self.rows as i64
    }

    /// The cursor of a place in this list.
    pub(in crate::http) fn cursor(&self, place: &Below) -> String {
        cursor::write(place, &self.list)
    }

    /// The page, and where the next one starts.
    pub(in crate::http) fn page<T>(
        &self,
        mut found: Vec<T>,
        place: impl Fn(&T) -> Below,
    ) -> (Vec<T>, Option<String>) {
        let more = found.len() > self.rows;
        found.truncate(self.rows);
        let next = found.last().filter(|_| more).map(|last| cursor::write(&place(last), &self.list));
        (found, next)
    }
}
