//! Why results could not be stored.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why results could not be stored.
#[derive(Debug)]
#[non_exhaustive]
pub enum WriteError {
    /// The disk is full, or the user's quota on it.
    DiskFull {
        /// Where the results were to go.
        path: PathBuf,
    },
    /// The system refused for another reason.
    Io {
        /// Where the results were to go.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// The directory that the results were to be made in does not exist.
    NoDirectory {
        /// Where the results were to go.
        path: PathBuf,
    },
    /// There is a file where a directory is expected, or the other way round.
    Occupied {
        /// Where the results were to go.
        path: PathBuf,
        /// What is expected there, if anything.
        expected: &'static str,
    },
    /// The directory holds files other than results.
    NotResults {
        /// Where the results were to go.
        path: PathBuf,
        /// A file found in it.
        found: PathBuf,
    },
    /// The values cannot be put into a Parquet file.
    #[cfg(feature = "parquet")]
    Parquet {
        /// Where the results were to go.
        path: PathBuf,
        /// What the encoder said.
        source: parquet::errors::ParquetError,
    },
    /// A run has two values for one axis.
    RepeatedAxis {
        /// The axis.
        axis: String,
    },
    /// No format of results has this extension.
    UnknownFormat {
        /// The extension.
        extension: String,
    },
    /// The path is not writable.
    Unwritable {
        /// Where the results were to go.
        path: PathBuf,
    },
}

impl WriteError {
    pub(super) fn io(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::NoDirectory { path },
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::Unwritable { path }
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull { path },
            _ => Self::Io { path, source },
        }
    }

    #[cfg(feature = "parquet")]
    pub(super) fn parquet(path: &Path, source: parquet::errors::ParquetError) -> Self {
        use parquet::errors::ParquetError;
        match source {
            ParquetError::External(inner) => match inner.downcast::<io::Error>() {
                Ok(source) => Self::io(path, *source),
                Err(inner) => Self::Parquet {
                    path: path.to_owned(),
                    source: ParquetError::External(inner),
                },
            },
            source => Self::Parquet {
                path: path.to_owned(),
                source,
            },
        }
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DiskFull { path } => {
                write!(
                    f,
                    "results cannot be stored at {}: the disk is full",
                    path.display()
                )
            }
            Self::Io { path, source } => {
                write!(
                    f,
                    "results cannot be stored at {}: {source}",
                    path.display()
                )
            }
            Self::NoDirectory { path } => write!(
                f,
                "results cannot be stored at {}: expected an existing directory at {}",
                path.display(),
                parent(path).display()
            ),
            Self::Occupied { path, expected } => write!(
                f,
                "results cannot be stored at {}: expected {expected} or nothing there",
                path.display()
            ),
            Self::NotResults { path, found } => write!(
                f,
                "results cannot be stored at {}: expected only earlier results there, found {}",
                path.display(),
                found.display()
            ),
            #[cfg(feature = "parquet")]
            Self::Parquet { path, source } => {
                write!(
                    f,
                    "results cannot be stored as Parquet at {}: {source}",
                    path.display()
                )
            }
            Self::RepeatedAxis { axis } => {
                write!(
                    f,
                    "a run has two values for the axis `{axis}`, expected one"
                )
            }
            Self::UnknownFormat { extension } if extension == "parquet" => f.write_str(
                "Parquet results are a folder with a file for each table; expected a name \
                 without extension, or with .csv or .json",
            ),
            Self::UnknownFormat { extension } => write!(
                f,
                "cannot store results as .{extension}; expected .csv, .json or no extension \
                 (Parquet)"
            ),
            Self::Unwritable { path } => write!(
                f,
                "results cannot be stored at {}: expected permission to write in {}",
                path.display(),
                parent(path).display()
            ),
        }
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            #[cfg(feature = "parquet")]
            Self::Parquet { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// The directory that a path is in.
pub(super) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}
