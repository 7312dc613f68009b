//! `comity keygen`

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use comity::credentials::{Randomness, StaticKey};
use serde_json::json;
use zeroize::Zeroizing;

use super::files::cannot_open;
use super::{Failure, complain, core_dumps, print, say};
use crate::args;

/// `comity keygen`.
///
/// # Errors
/// If the file exists, cannot be written or read, or is not a key. The message is printed.
pub fn keygen(args: &args::Keygen) -> Result<(), Failure> {
    core_dumps::turn_off();
    let (key, file) = match (&args.public, &args.file) {
        (Some(file), _) => (read(file)?, file),
        (None, Some(file)) => (make(file, args.force)?, file),
        (None, None) => unreachable!("the command line has one of the two"),
    };
    let public = key.public();
    if args.json {
        let file = file.display().to_string();
        return print(format!(
            "{:#}\n",
            json!({ "file": file, "public": public.to_string() })
        ));
    }
    print(format!("{public}\n"))
}

fn read(file: &Path) -> Result<StaticKey, Failure> {
    /// More than the length of any key with surrounding white space.
    const MOST: u64 = 1_024;
    let unreadable =
        |error: io::Error| complain(&format!("cannot read {}: {error}", file.display()));
    let opened = File::open(file).map_err(|error| cannot_open(file, &error))?;
    let mut text = Zeroizing::new(String::with_capacity(MOST as usize));
    opened
        .take(MOST)
        .read_to_string(&mut text)
        .map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => {
                complain(&format!("{} holds no key: it is not text", file.display()))
            }
            _ => unreadable(error),
        })?;
    // A public key may be readable to everybody; anything else may be a secret.
    if !text.starts_with("comity-public-")
        && let Some(warning) = exposure(file)
    {
        say(&format!("warning: {warning}"));
    }
    text.parse()
        .map_err(|error| complain(&format!("{} holds no key: {error}", file.display())))
}

/// The warning about a secret's file that users other than its owner can read or write.
#[cfg(unix)]
pub(crate) fn exposure(file: &Path) -> Option<String> {
    use std::os::unix::fs::PermissionsExt;
    let found = fs::metadata(file).ok().filter(fs::Metadata::is_file)?;
    let mode = found.permissions().mode() & 0o777;
    let file = file.display();
    (mode & 0o066 != 0).then(|| {
        format!("others can read {file}, or write to it (mode {mode:03o}); chmod 600 {file}")
    })
}

#[cfg(not(unix))]
pub(crate) fn exposure(_: &Path) -> Option<String> {
    None
}

fn make(file: &Path, force: bool) -> Result<StaticKey, Failure> {
    let key = StaticKey::generate(&mut Randomness::system());
    let text = Zeroizing::new(format!("{}\n", *key.secret_text()));
    let written = match force {
        true => replace(file, text.as_bytes()),
        false => create(file, text.as_bytes()),
    };
    match written {
        Ok(()) => Ok(key),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && !force => Err(complain(
            &format!("{} already exists; --force replaces it", file.display()),
        )),
        Err(error) => Err(complain(&format!(
            "cannot write {}: {error}{}",
            file.display(),
            missing_folder(file, &error)
        ))),
    }
}

/// The advice if the folder of a new file does not exist. The command does not create the folder,
/// because a mistyped path would hide the secret.
fn missing_folder(file: &Path, error: &io::Error) -> String {
    let folder = file.parent().filter(|folder| !folder.is_dir());
    match folder {
        Some(folder) if error.kind() == io::ErrorKind::NotFound => {
            format!("; make its folder first: mkdir -p {}", folder.display())
        }
        _ => String::new(),
    }
}

/// Creates a file that only its owner may read. A failure leaves no file behind.
fn create(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut opened = options.open(file)?;
    let written = opened.write_all(bytes).and_then(|()| opened.sync_all());
    if written.is_err() {
        // The error of the write is reported, not that of the removal.
        let _ = fs::remove_file(file);
    }
    written
}

/// Replaces a file atomically: a reader finds either the old or the new one.
fn replace(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let beside = PathBuf::from(name);
    create(&beside, bytes)?;
    fs::rename(&beside, file).inspect_err(|_| {
        let _ = fs::remove_file(&beside);
    })
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_secret_is_exposed_if_others_can_read_it_or_write_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        fs::write(&file, "secret").unwrap();
        let exposed = |mode| {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            exposure(&file)
        };
        for mode in [0o640, 0o604, 0o620, 0o602, 0o644] {
            let text = exposed(mode).unwrap();
            assert!(
                text.contains(&format!("(mode {mode:o}); chmod 600")),
                "{text}"
            );
        }
        // Execute permission alone does not expose the content.
        for mode in [0o600, 0o400, 0o711] {
            assert_eq!(exposed(mode), None, "{mode:o}");
        }
        // The shell's <(command) is not a file.
        assert_eq!(exposure(Path::new("/dev/null")), None);
        assert_eq!(exposure(&folder.path().join("none")), None);
    }
}
