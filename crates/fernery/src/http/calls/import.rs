//! Imports an exported folder: everything is checked before anything is written, and all of it is written or nothing.

use super::acting::actor;
use crate::http::problem::{Code, Refusal, Refused};
use crate::http::wire::answer::{Call, Replied, Reply};
use crate::http::wire::aside::aside;
use crate::http::wire::json;
use fernery_client::wire::{FieldProblem, ImportRequest, ImportResponse};
use fernery_core::canonical::Digest;
use fernery_core::exported::{self, Exported, Fault, File, index};
use fernery_engine::door;
use fernery_engine::pipeline::importing::{self, Imported, Importing};
use std::sync::Arc;

/// `POST /v1/import`
pub async fn import(call: Call) -> Replied {
    let (_writing, who, body) = (call.writing()?, actor(&call), call.body.clone());
    // Up to 64 MiB of documents are parsed and compared; other calls must not wait for that.
    let exported = aside(move || checked(&body)).await?;
    let (substrate, all) = (call.server.engine().substrate(), Arc::new(exported));
    let brought = substrate.transact(move |sql| {
        let brought = importing::import(sql, &who, &all)?;
        door::failpoint("import-written");
        Ok(brought)
    });
    let brought = brought.await?;
    door::failpoint("import-durable");
    match brought {
        Importing::Done(imported) => Reply::json(201, &told(imported, false)),
        Importing::Before(imported) => Reply::json(200, &told(imported, true)),
        Importing::NotEmpty(id) => {
            let detail = format!(
                "this instance already has tickets, for example {id}; import needs an instance \
                    without tickets"
            );
            Err(Refusal::new(Code::Conflict, detail))
        }
        Importing::UnknownAzollas(faults, known) => {
            let known: Vec<&str> = known.iter().map(|id| id.as_str()).collect();
            let hint = format!(
                "this server hosts: {}; start it with the missing blueprint (--azolla FILE), then import again",
                known.join(", ")
            );
            Err(faulty(faults, Some(&hint)))
        }
    }
}

fn told(imported: Imported, before: bool) -> ImportResponse {
    let Imported { digest, counts, as_new, ended, held, held_recurrences, .. } = imported;
    ImportResponse { before, digest, counts, as_new, ended, held, held_recurrences }
}

fn checked(body: &[u8]) -> Result<Exported, Refused> {
    let request: ImportRequest = json::read(body)?;
    let files: Vec<File> =
        request.files.into_iter().map(|file| File { path: file.path, text: file.content }).collect();
    if let Some(expected) = request.digest {
        is_expected(&files, expected)?;
    }
    exported::read(&files, door::wall_clock()).map_err(|faults| faulty(faults, None))
}

fn is_expected(files: &[File], expected: Digest) -> Result<(), Refused> {
    let found = files.iter().find(|file| file.path == index::PATH);
    match found.map(|file| index::digest(&file.text)) {
        Some(digest) if digest != expected => {
            let detail = format!("manifest.json: the folder's digest is {digest}, not the expected one");
            Err(Refusal::field(Code::Invalid, "/digest", detail))
        }
        _ => Ok(()),
    }
}

/// The refusal that names every fault with its file.
fn faulty(faults: Vec<Fault>, hint: Option<&str>) -> Refused {
    let first = faults.first().map(ToString::to_string).unwrap_or_default();
    let more = match faults.len() {
        0 | 1 => String::new(),
        2 => " (and 1 more fault)".to_string(),
        n => format!(" (and {} more faults)", n - 1),
    };
    let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
    let field = |fault: Fault| FieldProblem { pointer: "/files".into(), detail: fault.to_string() };
    let errors = faults.into_iter().map(field).collect();
    Box::new(Refusal {
        errors,
        ..*Refusal::new(Code::Invalid, format!("{first}{more}{hint}; nothing was written"))
    })
}
