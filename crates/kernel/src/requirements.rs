//! The requirements of Libra on its host.

use std::path::Path;

/// The types of the running kernel, which the loader corrects the program with.
const BTF: &str = "/sys/kernel/btf/vmlinux";

/// The missing requirements, each with advice; empty if Libra can be loaded.
pub fn missing() -> Vec<String> {
    let mut missing = Vec::new();
    if cfg!(not(feature = "bpf")) {
        missing.push(
            "this build has no loader: install clang, libelf-dev, zlib1g-dev, make and pkg-config, \
             then build with `--features kernel`"
                .into(),
        );
    } else if cfg!(not(has_program)) {
        missing
            .push("clang was missing when this was built: install clang, then build again".into());
    }
    if !rustix::process::geteuid().is_root() {
        missing.push("BPF needs root: run it with sudo".into());
    }
    if !Path::new(BTF).exists() {
        missing.push(format!(
            "{BTF} is missing: run a kernel that was built with CONFIG_DEBUG_INFO_BTF"
        ));
    }
    missing
}
