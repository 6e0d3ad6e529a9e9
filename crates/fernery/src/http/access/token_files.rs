//! The two token files of the data directory: `operator.token` and `worker.token`.
//!
//! The file is written before the row: whatever happens in between, the next start finds the file and adds the row. A
//! token that was revoked stays revoked; delete its file and start again to get a new one.

use super::token::TokenText;
use fernery_client::wire::Role;
use fernery_engine::store::{Store, TokenRow};
use fernery_engine::{Engine, StoreError, door};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tracing::warn;

/// Where a role's token is kept.
pub fn token_path(data_dir: &Path, role: Role) -> PathBuf {
    data_dir.join(format!("{role}.token"))
}

/// Makes the files that are missing, and makes sure that the store knows the tokens in them.
pub async fn ensure_token_files(engine: &Engine, data_dir: &Path) -> io::Result<()> {
    for role in [Role::Operator, Role::Worker] {
        let path = token_path(data_dir, role);
        let token = match read(&path)? {
            Some(token) => token,
            None => make(&path)?,
        };
        register(engine.store(), &token, role, &path).await?;
    }
    Ok(())
}

fn read(path: &Path) -> io::Result<Option<TokenText>> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(named(path, &error.to_string())),
    };
    if fs::metadata(path)?.permissions().mode() & 0o077 != 0 {
        return Err(named(
            path,
            "other users can read it; set its mode to 0600, and revoke the token if \
            somebody may have read it",
        ));
    }
    let token = TokenText::parse(text.trim())
        .ok_or_else(|| named(path, "it contains no token; delete the file to get a new one"))?;
    Ok(Some(token))
}

fn make(path: &Path) -> io::Result<TokenText> {
    let token = TokenText::random();
    let partial = path.with_extension("token.partial");
    let _ = fs::remove_file(&partial);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial)?;
    writeln!(file, "{}", token.reveal())?;
    file.sync_all()?;
    fs::rename(&partial, path)?;
    if let Some(folder) = path.parent() {
        fs::File::open(folder)?.sync_all()?;
    }
    Ok(token)
}

async fn register(store: &dyn Store, token: &TokenText, role: Role, path: &Path) -> io::Result<()> {
    let failed = |error: StoreError| named(path, &format!("could not register its token: {error}"));
    let rows = store.tokens().await.map_err(failed)?;
    match rows.iter().find(|row| row.token_id == token.id()) {
        Some(row) if row.revoked_at.is_some() => {
            warn!(
                path = %path.display(),
                "this token is revoked; to get a new one, delete the file and restart the server"
            );
        }
        Some(row) if row.role != role.as_str() => {
            return Err(named(path, &format!("its token has the role {}", row.role)));
        }
        Some(_) => {}
        None => {
            let row = TokenRow {
                token_id: token.id().to_string(),
                name: format!("{role}.token"),
                role: role.as_str().to_string(),
                streams: Vec::new(),
                azolla_id: None,
                secret_hash: token.secret_hash(),
                created_at: door::wall_clock(),
                expires_at: None,
                revoked_at: None,
            };
            store.add_token(row).await.map_err(failed)?;
        }
    }
    Ok(())
}

fn named(path: &Path, what: &str) -> io::Error {
    io::Error::other(format!("{}: {what}", path.display()))
}
