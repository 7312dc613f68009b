//! The key log: the secrets of connections, for programs that decrypt captured packets.

use std::fmt::Write as _;
use std::fs::{File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use comity_transport::wire::header::ConnectionId;
use zeroize::Zeroizing;

use crate::existing::Existing;

/// A file with the secrets of connections, one line for each. Whoever reads it can decrypt their
/// packets, also those that were captured before.
///
/// ```text
/// COMITY2 cipher caller listener secret-to-listener secret-to-caller
/// ```
///
/// The cipher is 1 (AES-128-GCM) or 2 (ChaCha20-Poly1305), as in the handshake. The other fields
/// are hexadecimal: the first connection identifiers of both endpoints (16 digits), and `secret(0)`
/// of both directions (64 digits). `tools/wireshark/comity.lua` reads it. Clones write to the same
/// file.
#[derive(Clone, Debug)]
pub struct KeyLog(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    file: File,
    failed: Option<io::Error>,
}

impl KeyLog {
    /// Creates the file, which only its owner can read. An existing file is not replaced, and a
    /// symbolic link is not followed.
    ///
    /// # Errors
    ///
    /// If the file exists or cannot be created.
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::open(path.as_ref(), Existing::Kept)
    }

    /// As [`create`](Self::create), but replaces an existing file.
    ///
    /// # Errors
    ///
    /// If the file cannot be created, or is a symbolic link.
    pub fn create_over(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::open(path.as_ref(), Existing::Replaced)
    }

    fn open(path: &Path, existing: Existing) -> io::Result<Self> {
        let file = existing.create(path)?;
        if file.metadata()?.is_file() {
            file.set_permissions(Permissions::from_mode(0o600))?;
        }
        let failed = None;
        Ok(Self(Arc::new(Mutex::new(State { file, failed }))))
    }

    /// Writes the line of a connection at once, so that a program that follows the file can decrypt
    /// live. Caller before listener, and the secret to the listener before that to the caller.
    pub(crate) fn write(
        &self,
        cipher: u8,
        [caller, listener]: [ConnectionId; 2],
        secrets: [&[u8; 32]; 2],
    ) {
        let mut line = Zeroizing::new(format!("COMITY2 {cipher} {caller} {listener}"));
        for secret in secrets {
            line.push(' ');
            for byte in secret {
                let _ = write!(line, "{byte:02x}");
            }
        }
        line.push('\n');
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = state.file.write_all(line.as_bytes()) {
            state.failed.get_or_insert(error);
        }
    }

    /// Whether all lines were written.
    ///
    /// # Errors
    ///
    /// The first failure.
    pub fn finish(&self) -> io::Result<()> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.failed.take().map_or(Ok(()), Err)
    }
}
