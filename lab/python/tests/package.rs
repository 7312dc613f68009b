//! Python imports the package and runs a scenario, without any other package.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The package with the extension module that Cargo built beside this test.
fn package() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
    let to = folder.join("comity");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/comity");
    std::fs::create_dir_all(&to).unwrap();
    for entry in std::fs::read_dir(sources).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            std::fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
        }
    }
    let test = std::env::current_exe().unwrap();
    let module = test.with_file_name("libcomity_python.so");
    std::fs::copy(module, to.join("_comity.abi3.so")).unwrap();
    folder
}

#[test]
fn python_runs_a_scenario_and_the_command() {
    let folder = package();
    let python = |words: &[&str]| {
        let output = Command::new("python3")
            .args(words)
            .env("PYTHONPATH", &folder)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        String::from_utf8(output.stdout).unwrap()
    };
    let script = r#"
import comity
results = comity.run({
    "scenario": {"name": "tiny", "duration": "2s"},
    "topology": {
        "kind": "dumbbell",
        "bottleneck": {"rate": "2Mbps", "delay": "10ms", "queue": 20},
        "access": {"rate": "10Mbps", "delay": "1ms"},
    },
    "flow": [{"group": "tcp", "count": 2}],
}, seeds=[1, 2, 3])
print(comity.__version__, len(results), len(results.flows), results.flows.units["goodput_bps"])
"#;
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(python(&["-c", script]), format!("{version} 3 6 bit/s\n"));
    let said = python(&["-m", "comity", "--version"]);
    assert_eq!(said, format!("comity {version}\n"));
}
