//! A crate's tests are one program where its manifest says `autotests = false`. Cargo then builds
//! the files that `tests/main.rs` or the manifest names, and no other: none is left out here.

use std::fs;

#[test]
fn every_test_file_is_part_of_a_program() {
    let (mut checked, mut left_out) = (0, Vec::new());
    for package in super::metadata().workspace_packages() {
        let folder = package.manifest_path.parent().unwrap().as_std_path();
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
        let Ok(root) = fs::read_to_string(folder.join("tests/main.rs")) else {
            continue;
        };
        if !manifest.contains("autotests = false") {
            continue;
        }
        for file in fs::read_dir(folder.join("tests")).unwrap() {
            let path = file.unwrap().path();
            let is_test = path.extension().is_some_and(|end| end == "rs")
                || path.join("main.rs").exists()
                || path.join("mod.rs").exists();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            if !is_test || name == "main" {
                continue;
            }
            checked += 1;
            if !root.contains(&format!("mod {name};"))
                && !manifest.contains(&format!("\"tests/{name}.rs\""))
                && !manifest.contains(&format!("\"tests/{name}/main.rs\""))
            {
                left_out.push(path);
            }
        }
    }
    assert!(checked > 50, "{checked} files");
    assert!(left_out.is_empty(), "no program has {left_out:?}");
}
