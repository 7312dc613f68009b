//! The page `docs/reference/settings.md`, from the tables of keys. To update it:
//!
//! ```text
//! COMITY_UPDATE=1 cargo test -p comity-commands uri::page
//! ```

use std::fmt::Write as _;

use comity::parts::SETTINGS;
use comity::uri::{Key, Kind, keys};
use comity_congestion::table::Domain;

use super::media::KEYS;

const PAGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/reference/settings.md"
);

fn values(kind: &Kind, expected: String) -> String {
    match kind {
        Kind::Domain(Domain::Choice(words)) => {
            let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
            words.join(", ")
        }
        _ => expected,
    }
}

fn code(text: &str) -> String {
    match text {
        "" => String::new(),
        text => format!("`{text}`"),
    }
}

fn table(page: &mut String, title: &str, keys: &[Key]) -> std::fmt::Result {
    writeln!(page, "\n## {title}\n")?;
    writeln!(page, "| key | what it does | default | expected |")?;
    writeln!(page, "| --- | --- | --- | --- |")?;
    for key in keys {
        let names = std::iter::once(&key.name).chain(key.aliases);
        let names: Vec<_> = names.map(|name| code(name)).collect();
        let only = key
            .only
            .map_or(String::new(), |mode| format!(" Only for a {mode}."));
        let (names, summary, default) = (names.join(", "), &key.summary, code(&key.default));
        let values = values(&key.kind, key.expected());
        writeln!(page, "| {names} | {summary}{only} | {default} | {values} |")?;
    }
    Ok(())
}

fn page() -> Result<String, std::fmt::Error> {
    let mut page = String::from(
        "# URIs and settings\n\n\
         Generated from the tables in `product/comity/src/config/settings.rs`,\n\
         `product/comity/src/uri/mod.rs` and `product/commands/src/stream/uri/media.rs`;\n\
         `COMITY_UPDATE=1 cargo test -p comity-commands uri::page` writes it anew.\n\n\
         | URI | meaning |\n\
         | --- | --- |\n\
         | `comity://host:9000` | calls `host`, an address or a name; IPv6 addresses are in brackets |\n\
         | `comity://[fe80::1%25eth0]:9000` | a link-local address with its zone, the name or number of an interface; `%eth0` works, too |\n\
         | `comity://:9000` | listens on port 9000 of all local addresses |\n\
         | `comity://192.0.2.1:9000?mode=listener` | listens on one of them |\n\
         | `udp://host:5000`, `rtp://host:5000` | as an output, sends media to `host`, which may be a multicast group |\n\
         | `udp://192.0.2.1:5000`, `rtp://192.0.2.1:5000` | as an input, receives media on this address of the host, or joins the group |\n\
         | `udp://:5000`, `rtp://:5000` | receives media on port 5000 |\n\
         | `udp://@239.1.2.3:5000`, `rtp://@239.1.2.3:5000` | joins a multicast group and receives |\n\
         | `file:///path`, `path` | a file; a bare path is not decoded |\n\
         | `-` | standard input or standard output |\n\n\
         Settings follow as `?key=value&key=value`. In a value, write `&`, `#`, `%`, `?` and spaces as `%`\n\
         and two hexadecimal digits, such as `%26` for `&`; `+` is a plus. Times, rates and sizes can have a\n\
         unit. Without one, they are in milliseconds, bit/s and bytes, for every key. `iptos`, `ttl` and `pt`\n\
         are numbers without a unit. A flag is `true` or `false` (also `1`, `yes`, `on`, `0`, `no`, `off`).\n\
         The name of a flag alone sets it. Unknown keys, repeated keys and contradictory keys are errors. If\n\
         the column of a default is empty, the text names the default, or there is none.\n",
    );
    table(&mut page, "comity", keys())?;
    table(&mut page, "udp and rtp", &KEYS)?;
    page.push_str(
        "\n## The library\n\n\
         `comity::Config` has these settings under these names. A setting with a key is described above.\n\n\
         | setting | key | default | expected | what it does |\n\
         | --- | --- | --- | --- | --- |\n",
    );
    for setting in SETTINGS {
        let (key, summary) = match setting.key() {
            Some(key) => (code(key), String::new()),
            None => (String::new(), setting.summary().to_owned()),
        };
        let (name, default) = (setting.name, code(&setting.default_text()));
        let values = values(&setting.kind, setting.kind.expected());
        writeln!(
            page,
            "| `{name}` | {key} | {default} | {values} | {summary} |"
        )?;
    }
    Ok(page)
}

#[test]
fn the_page_is_up_to_date() {
    comity_testkit::page::assert_up_to_date(PAGE, &page().unwrap());
}
