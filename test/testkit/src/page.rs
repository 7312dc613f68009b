//! Pages of the documents that are generated from tables.

use std::path::Path;

/// Compares the file at `path` with `page`, which is generated from tables. With `COMITY_UPDATE` in
/// the environment, writes the file first.
///
/// # Panics
///
/// If the file differs from the page, or cannot be written.
pub fn assert_up_to_date(path: impl AsRef<Path>, page: &str) {
    let path = path.as_ref();
    let shown = path.display();
    if std::env::var_os("COMITY_UPDATE").is_some() {
        std::fs::write(path, page).unwrap_or_else(|error| panic!("{shown}: {error}"));
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == page,
        "{shown} is out of date; update it with COMITY_UPDATE=1"
    );
}
