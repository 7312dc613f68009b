//! No two modules of a crate need each other.
//!
//! A module needs another if its code names something that is defined there, and if the path goes
//! through a re-export there, of this crate or of another one. A parent that only re-exports what
//! its children define needs none of them, and a child may name what its parents re-export without
//! needing them. Tests inside of a module are left out. Methods are not seen, as their calls name
//! no path.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use comity_testkit::tracked::files;

/// A module by its path below the crate; the crate itself is the empty one.
type Name = Vec<String>;

/// What the code of a module says, as far as names go.
#[derive(Debug, Default)]
struct Module {
    children: BTreeSet<String>,
    items: BTreeSet<String>,
    /// Imported names and the paths that they stand for.
    imports: BTreeMap<String, Vec<String>>,
    /// Paths that everything is imported from.
    globs: Vec<Vec<String>>,
    /// The paths that the code needs: those that it names, and those that are imported but not for
    /// others.
    paths: BTreeSet<Vec<String>>,
}

type Modules = BTreeMap<Name, Module>;

/// What a path leads to.
#[derive(Clone, Debug, PartialEq)]
enum Target {
    Module(Name),
    /// An item and the module that defines it.
    Item(Name),
}

/// Words, `::` and single characters, without comments and literals.
pub(crate) fn tokens(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let at = |index: usize| chars.get(index).copied().unwrap_or('\n');
    let is_word = |char: char| char.is_alphanumeric() || char == '_';
    let mut tokens = Vec::new();
    let mut here = 0;
    while here < chars.len() {
        let start = here;
        let hashes = |from: usize| (from..).take_while(|&index| at(index) == '#').count();
        match at(here) {
            '/' if at(here + 1) == '/' => {
                here = (here..).find(|&index| at(index) == '\n').unwrap_or(here);
            }
            '/' if at(here + 1) == '*' => {
                here += 2;
                while here < chars.len() && (at(here), at(here + 1)) != ('*', '/') {
                    here += 1;
                }
                here += 2;
            }
            'r' if at(here + 1 + hashes(here + 1)) == '"' => {
                let hashes = hashes(here + 1);
                here += hashes + 2;
                let is_end = |index: usize| {
                    at(index) == '"' && (1..=hashes).all(|hash| at(index + hash) == '#')
                };
                while here < chars.len() && !is_end(here) {
                    here += 1;
                }
                here += hashes + 1;
            }
            '"' => {
                here += 1;
                while here < chars.len() && at(here) != '"' {
                    here += if at(here) == '\\' { 2 } else { 1 };
                }
                here += 1;
            }
            '\'' if at(here + 1) == '\\' => {
                here += 3;
                while here < chars.len() && at(here) != '\'' {
                    here += 1;
                }
                here += 1;
            }
            '\'' if at(here + 2) == '\'' => here += 3,
            // A lifetime: `'static` is no item.
            '\'' => {
                here += 1;
                while is_word(at(here)) {
                    here += 1;
                }
            }
            ':' if at(here + 1) == ':' => {
                here += 2;
                tokens.push("::".to_owned());
            }
            char if is_word(char) => {
                while is_word(at(here)) {
                    here += 1;
                }
                tokens.push(chars[start..here].iter().collect());
            }
            char => {
                here += 1;
                if !char.is_whitespace() {
                    tokens.push(char.to_string());
                }
            }
        }
    }
    tokens
}

fn is_name(token: &str) -> bool {
    token.starts_with(|char: char| char.is_alphabetic() || char == '_')
}

/// A place in the tokens of a file.
pub(crate) struct Cursor<'t> {
    tokens: &'t [String],
    at: usize,
}

impl<'t> Cursor<'t> {
    pub(crate) const fn new(tokens: &'t [String]) -> Self {
        Self { tokens, at: 0 }
    }

    pub(crate) const fn advance(&mut self, by: usize) {
        self.at += by;
    }

    pub(crate) fn peek(&self, ahead: usize) -> &'t str {
        self.tokens.get(self.at + ahead).map_or("", String::as_str)
    }

    pub(crate) fn before(&self) -> &'t str {
        self.at.checked_sub(1).map_or("", |at| &self.tokens[at])
    }

    /// Goes behind the bracket that closes the one at this place.
    fn skip_group(&mut self) {
        let mut depth = 0_usize;
        while self.at < self.tokens.len() {
            match self.peek(0) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return;
            }
        }
    }

    /// Goes behind the item at this place.
    fn skip_item(&mut self) {
        while !matches!(self.peek(0), ";" | "{" | "") {
            match self.peek(0) {
                "(" | "[" => self.skip_group(),
                _ => self.at += 1,
            }
        }
        match self.peek(0) {
            "{" => self.skip_group(),
            _ => self.at += 1,
        }
    }

    /// Reads the tree of a `use`: each path in it, and the name that it is imported as, or `*`.
    pub(crate) fn use_tree(&mut self, prefix: &[String], found: &mut Vec<(Vec<String>, String)>) {
        let mut path = prefix.to_vec();
        loop {
            match self.peek(0) {
                "::" => self.at += 1,
                "{" => {
                    self.at += 1;
                    while !matches!(self.peek(0), "}" | "") {
                        self.use_tree(&path, found);
                        self.at += usize::from(self.peek(0) == ",");
                    }
                    self.at += 1;
                    return;
                }
                "*" => {
                    self.at += 1;
                    found.push((path, "*".to_owned()));
                    return;
                }
                word => {
                    path.push(word.to_owned());
                    self.at += 1;
                    if self.peek(0) == "::" {
                        continue;
                    }
                    if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
                        path.pop();
                    }
                    let mut name = path.last().cloned().unwrap_or_default();
                    if self.peek(0) == "as" {
                        name = self.peek(1).to_owned();
                        self.at += 2;
                    }
                    found.push((path, name));
                    return;
                }
            }
        }
    }
}

/// Reads a file, or the inside of a module that is written out in one, into the modules of its
/// crate.
fn read(modules: &mut Modules, name: &[String], tokens: &[String]) {
    const DEFINES: [&str; 9] = [
        "struct",
        "enum",
        "fn",
        "trait",
        "type",
        "const",
        "static",
        "union",
        "macro_rules",
    ];
    let mut module = Module::default();
    let mut depth = 0_usize;
    let mut is_in_macro = false;
    let mut cursor = Cursor { tokens, at: 0 };
    while cursor.at < tokens.len() {
        match cursor.peek(0) {
            "#" if cursor.peek(1) == "[" => {
                let is_test = cursor.peek(2) == "cfg" && cursor.peek(4) == "test";
                cursor.at += 1;
                cursor.skip_group();
                if is_test {
                    while cursor.peek(0) == "#" {
                        cursor.at += 1;
                        cursor.skip_group();
                    }
                    cursor.skip_item();
                }
            }
            "use" => {
                let is_for_others = matches!(cursor.before(), "pub" | ")");
                cursor.at += 1;
                let mut found = Vec::new();
                cursor.use_tree(&[], &mut found);
                for (path, import) in found {
                    if import == "*" {
                        module.globs.push(path);
                        continue;
                    }
                    if !is_for_others {
                        module.paths.insert(path.clone());
                    }
                    module.imports.insert(import, path);
                }
            }
            "mod" if depth == 0 && is_name(cursor.peek(1)) => {
                let child = cursor.peek(1).to_owned();
                cursor.at += 2;
                if cursor.peek(0) == "{" {
                    let from = cursor.at + 1;
                    cursor.skip_group();
                    let mut name = name.to_vec();
                    name.push(child.clone());
                    read(modules, &name, &tokens[from..cursor.at - 1]);
                }
                module.children.insert(child);
            }
            word if depth == 0 && DEFINES.contains(&word) => {
                let name = usize::from(cursor.peek(1) == "!") + 1;
                let is_named = is_name(cursor.peek(name));
                if is_named {
                    module.items.insert(cursor.peek(name).to_owned());
                }
                // `const fn` has its name behind the second word, and `const { .. }` has none.
                let is_keyword = DEFINES.contains(&cursor.peek(name));
                cursor.at += if is_keyword || !is_named { 1 } else { name + 1 };
            }
            // `counters! { .. }` defines its items in this module.
            "!" if depth == 0 && cursor.peek(1) == "{" => {
                is_in_macro = true;
                cursor.at += 2;
            }
            "}" if depth == 0 && is_in_macro => {
                is_in_macro = false;
                cursor.at += 1;
            }
            word => {
                depth += usize::from(word == "{");
                assert!(word != "}" || depth > 0, "{name:?}: a brace too many");
                depth -= usize::from(word == "}");
                let is_path = is_name(word) && cursor.before() != ".";
                cursor.at += 1;
                if is_path {
                    let mut path = vec![word.to_owned()];
                    while cursor.peek(0) == "::" && is_name(cursor.peek(1)) {
                        path.push(cursor.peek(1).to_owned());
                        cursor.at += 2;
                    }
                    module.paths.insert(path);
                }
            }
        }
    }
    modules.insert(name.to_vec(), module);
}

/// The modules of a crate.
fn modules(source: &Path) -> Modules {
    let mut modules = Modules::new();
    for path in files(source, &["rs"]) {
        let below = path.strip_prefix(source).expect("it is below its folder");
        let parts = below.with_extension("");
        let parts = parts.iter().map(|part| part.to_string_lossy().into_owned());
        let mut name: Vec<String> = parts.collect();
        let is_root = matches!(&*name, [only] if only == "lib" || only == "main");
        if is_root || name.last().is_some_and(|last| last == "mod") {
            name.pop();
        }
        let text = fs::read_to_string(&path).expect("a source is text");
        read(&mut modules, &name, &tokens(&text));
    }
    modules
}

/// What a path in a module leads to; `None` outside of the crate and for what is no path after all.
/// Adds the modules whose imports the path goes through to `passed`.
fn resolve(
    modules: &Modules,
    from: &[String],
    path: &[String],
    passed: &mut BTreeSet<Name>,
    depth: u32,
) -> Option<Target> {
    // Imports may go in circles; no honest chain of them is this long.
    let depth = depth.checked_sub(1)?;
    let mut here = from.to_vec();
    let mut rest = path;
    let mut is_relative = true;
    while let [first, ..] = rest {
        match first.as_str() {
            "crate" => here.clear(),
            "self" => {}
            "super" => drop(here.pop()),
            _ => break,
        }
        is_relative = false;
        rest = &rest[1..];
    }
    while let [name, after @ ..] = rest {
        let module = modules.get(&here)?;
        let found = if module.children.contains(name) {
            let mut child = here.clone();
            child.push(name.clone());
            Some(Target::Module(child))
        } else if module.items.contains(name) {
            Some(Target::Item(here.clone()))
        } else if let Some(import) = module.imports.get(name) {
            passed.insert(here.clone());
            // What is imported but not found belongs to another crate.
            Some(resolve(modules, &here, import, passed, depth)?)
        } else {
            module.globs.iter().find_map(|glob| {
                let mut through = BTreeSet::from([here.clone()]);
                let target = resolve(modules, &here, glob, &mut through, depth)?;
                let Target::Module(there) = target else {
                    return None;
                };
                let path = ["self".to_owned(), name.clone()];
                let found = resolve(modules, &there, &path, &mut through, depth)?;
                let is_there = match &found {
                    Target::Module(_) => true,
                    Target::Item(home) => modules[home].items.contains(name),
                };
                if !is_there {
                    return None;
                }
                passed.append(&mut through);
                Some(found)
            })
        };
        match found {
            Some(Target::Module(module)) => here = module,
            Some(item) => return Some(item),
            None if is_relative => return None,
            None => return Some(Target::Item(here)),
        }
        is_relative = false;
        rest = after;
    }
    Some(Target::Module(here))
}

/// Which modules each one needs, with a path that says so.
fn needs(modules: &Modules) -> BTreeMap<&Name, BTreeMap<Name, String>> {
    let of = modules.iter().map(|(name, module)| {
        let mut needed = BTreeMap::new();
        for path in &module.paths {
            let mut found = BTreeSet::new();
            let target = resolve(modules, name, path, &mut found, 32);
            found.retain(|passed| !name.starts_with(passed));
            if let Some(Target::Item(home)) = target {
                found.insert(home);
            }
            found.remove(name);
            needed.extend(found.into_iter().map(|module| (module, path.join("::"))));
        }
        (name, needed)
    });
    of.collect()
}

/// The circles of a crate: sets of modules in which each needs each of the others, if only in the
/// end.
fn circles(modules: &Modules) -> Vec<BTreeSet<Name>> {
    let needs = needs(modules);
    let reached = |from: &Name| {
        let mut reached = BTreeSet::new();
        let mut unvisited: Vec<&Name> = vec![from];
        while let Some(name) = unvisited.pop() {
            for next in needs.get(name).into_iter().flat_map(BTreeMap::keys) {
                if reached.insert(next.clone()) {
                    unvisited.push(next);
                }
            }
        }
        reached
    };
    let reach: BTreeMap<&Name, BTreeSet<Name>> =
        modules.keys().map(|name| (name, reached(name))).collect();
    let circle_of = |name: &Name| -> BTreeSet<Name> {
        let mutual = reach[name]
            .iter()
            .filter(|other| reach[other].contains(name));
        mutual.cloned().collect()
    };
    let circles: BTreeSet<_> = modules.keys().map(circle_of).collect();
    circles
        .into_iter()
        .filter(|circle| !circle.is_empty())
        .collect()
}

/// A circle with its arrows, for people.
fn describe(modules: &Modules, circle: &BTreeSet<Name>) -> String {
    let needs = needs(modules);
    let word = |name: &Name| match name.as_slice() {
        [] => "the crate's root".to_owned(),
        name => name.join("::"),
    };
    let arrows = circle.iter().flat_map(|from| {
        let inside = needs[from].iter().filter(|(to, _)| circle.contains(*to));
        inside.map(move |(to, path)| format!("  {} -> {} by {path}\n", word(from), word(to)))
    });
    arrows.collect()
}

#[test]
fn modules_go_in_no_circle() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let (mut looked_at, mut found) = (BTreeSet::new(), String::new());
    for folder in ["base", "product", "lab", "test", "benches", "."] {
        for entry in fs::read_dir(root.join(folder)).expect("the folder can be read") {
            let path = entry.expect("its entries can be read").path();
            if !path.join("Cargo.toml").is_file() || !path.join("src").is_dir() {
                continue;
            }
            let modules = modules(&path.join("src"));
            for circle in circles(&modules) {
                found += &format!("{}:\n{}\n", path.display(), describe(&modules, &circle));
            }
            looked_at.extend(path.file_name().map(OsStr::to_os_string));
        }
    }
    for name in ["comity", "tcp", "program", "compare", "loom"] {
        assert!(looked_at.contains(OsStr::new(name)), "{name}");
    }
    assert!(found.is_empty(), "modules that need each other:\n{found}");
}

/// A crate of these files.
fn a_crate(files: &[(&str, &str)]) -> Modules {
    let mut modules = Modules::new();
    for (name, text) in files {
        let name: Name = name
            .split("::")
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect();
        read(&mut modules, &name, &tokens(text));
    }
    modules
}

#[test]
fn a_circle_is_found_whatever_the_path_to_it() {
    let child = |text| ("a", text);
    let parent = "mod a; pub use a::Thing; mod b; fn helper() {}";
    let other = ("b", "pub struct B; fn f() { super::helper(); }");
    // The child needs its parent only for what a sibling defines, or for nothing that is not a
    // test's.
    for text in [
        "pub struct Thing; use crate::b::B;",
        "pub struct Thing; // crate::helper()",
        "pub struct Thing; const TEXT: &str = \"crate::helper()\";",
        "pub struct Thing; #[cfg(test)] mod tests { use super::super::helper; }",
        "pub struct Thing; fn f() { let x = '\\''; let y = '\"'; std::helper(); x.helper(); }",
    ] {
        assert_eq!(
            circles(&a_crate(&[("", parent), child(text), other])),
            [],
            "{text}"
        );
    }
    // A parent that names what its child defines needs it, by re-export or not.
    let user = "mod a; pub use a::Thing; mod b; table! { fn helper() { let _ = Thing; } }";
    for text in [
        "pub struct Thing; use crate::helper;",
        "pub struct Thing; fn f() { super::helper() }",
        "pub struct Thing; use super::{helper as other};",
        "pub struct Thing; fn f() { assert!(crate::helper() == ()); }",
        "pub struct Thing; use super::*; fn f() { helper() }",
        "pub struct Thing; use crate::b; fn f() -> b::B { todo!() }",
    ] {
        let modules = a_crate(&[("", user), child(text), other]);
        let found = circles(&modules);
        assert_eq!(found.len(), 1, "{text}");
        assert!(
            found[0].contains(&vec!["a".to_owned()]),
            "{text}: {found:?}"
        );
        assert!(describe(&modules, &found[0]).contains("a -> "), "{text}");
    }
}

#[test]
fn a_circle_through_a_re_export_is_found() {
    let files = |error, section| {
        [
            ("", "mod config; mod error; mod section;"),
            ("config", "use crate::error::Error; pub struct Config;"),
            ("error", error),
            ("section", section),
        ]
    };
    let facade = "pub use transport::Id; use crate::config::Config;";
    let direct = "use transport::Id; pub struct Error(Id);";
    let indirect = "use crate::section::Id; pub struct Error(Id);";
    assert_eq!(circles(&a_crate(&files(direct, facade))), []);
    let modules = a_crate(&files(indirect, facade));
    let all = ["config", "error", "section"].map(|name| vec![name.to_owned()]);
    assert_eq!(circles(&modules), [BTreeSet::from(all)]);
    // The section only re-exports: it needs nobody.
    let leaf = "pub use transport::Id; pub use crate::config::Config;";
    assert_eq!(circles(&a_crate(&files(indirect, leaf))), []);
    // What the children of a module name through it is no need of the module.
    let children = [
        ("", "mod a;"),
        ("a", "mod b; mod c; pub use b::B; fn f() { c::run(); }"),
        ("a::b", "pub struct B;"),
        ("a::c", "use super::B; pub fn run() {}"),
    ];
    assert_eq!(circles(&a_crate(&children)), []);
}
