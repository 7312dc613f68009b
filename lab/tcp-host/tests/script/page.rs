//! The page about the scripts.

use std::fmt::Write as _;

use super::language::{Difference, Script};

/// The page, made from all scripts.
pub(super) fn page(scripts: &[Script]) -> String {
    let mut page = String::new();
    let differing = scripts.iter().filter(|it| !it.differences.is_empty());
    let _ = write!(
        page,
        "# Where does the TCP host differ from Linux?\n\n\
         In {} of {} packet scripts. The reasons are [below](#differences).\n\n\
         The scripts in `lab/tcp-host/tests/scripts` are in the language of packetdrill, which can\n\
         run them unchanged. They follow the RFCs, and run over IPv4 and IPv6 unless they are about one\n\
         of the two. The tests of the crate run them against the host in virtual time and, as root,\n\
         against the kernel in real time. The scripts describe Linux 6.18 without segmentation offload\n\
         and with Reno. If the host differs, its line is a comment after the line that it replaces.\n\n\
         `COMITY_UPDATE=1 cargo test -p comity-tcp-host --test it script` writes this page again.\n\n\
         | script | what it shows | source | Linux | Comity |\n\
         | --- | --- | --- | --- | --- |\n",
        differing.count(),
        scripts.len(),
    );
    for script in scripts {
        let comity = match script.differences.len() {
            0 => "as written".into(),
            1 => "differs".into(),
            count => format!("differs in {count} places"),
        };
        let (name, purpose, source) = (name(script), &script.purpose, &script.source);
        let purpose = purpose.trim_end_matches('.');
        let source = source.trim_end_matches('.');
        let _ = writeln!(
            page,
            "| {name} | {purpose} | {source} | as written | {comity} |"
        );
    }
    page.push_str("\n## Differences\n");
    for script in scripts.iter().filter(|it| !it.differences.is_empty()) {
        let _ = write!(page, "\n### {}\n", name(script));
        for difference in &script.differences {
            describe(&mut page, difference);
        }
    }
    page
}

fn name(script: &Script) -> &str {
    script.file.trim_end_matches(".pkt")
}

fn describe(page: &mut String, difference: &Difference) {
    let Difference {
        linux,
        comity,
        reason,
        line,
    } = difference;
    let _ = write!(page, "\n```text\n");
    for (stack, lines) in [("Linux", linux), ("Comity", comity)] {
        if lines.is_empty() {
            let _ = writeln!(page, "{stack:<7} (nothing)");
        }
        for line in lines {
            let _ = writeln!(page, "{stack:<7} {line}");
        }
    }
    let _ = write!(page, "```\n\nLine {line}: ");
    let mut width = format!("Line {line}:").len();
    for word in reason.split_whitespace() {
        if width + 1 + word.len() > 100 {
            page.push('\n');
            width = 0;
        } else if width > 0 && !page.ends_with(' ') {
            page.push(' ');
        }
        page.push_str(word);
        width += 1 + word.len();
    }
    page.push('\n');
}
