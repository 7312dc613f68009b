//! Each bound of the threat model has a name in one file, and a test.

use std::fs;
use std::path::PathBuf;

use super::links::links;

/// The cells of the rows of the table below `heading`.
fn rows<'a>(page: &'a str, heading: &str) -> Vec<Vec<&'a str>> {
    let (_, section) = page.split_once(heading).expect("the heading is there");
    section
        .lines()
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'))
        .skip(2)
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect()
}

/// The words between backticks.
fn names(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

#[test]
fn bounds_of_the_threat_model_have_a_name_and_a_test() {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/design"));
    let page = fs::read_to_string(folder.join("threat-model.md")).expect("a page is text");
    let rows = rows(&page, "\n## Bounds\n");
    assert!(rows.len() >= 20, "{} rows", rows.len());
    let linked = |cell: &str| {
        let (label, target) = links(cell).pop().expect("a link to a file");
        let text = fs::read_to_string(folder.join(&target));
        (
            label.to_owned(),
            text.unwrap_or_else(|error| panic!("{target}: {error}")),
        )
    };
    for row in rows {
        let [what, _, source, test] = row[..] else {
            panic!("{row:?}: expected what, bound, where and test");
        };
        let (file, text) = linked(source);
        assert!(names(source).count() > 0, "{what}: expected a name");
        for name in names(source) {
            assert!(text.contains(name), "{what}: {name} is not in {file}");
        }
        let (test, text) = linked(test);
        let function = format!("#[test]\nfn {test}()");
        let text = text.replace("    #[test]\n    fn", "#[test]\nfn");
        let asynchronous = format!("#[tokio::test]\nasync fn {test}()");
        assert!(
            text.contains(&function) || text.contains(&asynchronous),
            "{what}: no test {test}"
        );
    }
}
