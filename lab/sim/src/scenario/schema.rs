//! Declares each table once: the reader, the checks and the reference come from the same lines.
//!
//! [`table!`] declares a table as a structure. Its fields are keys, each with its documentation,
//! its [`Kind`] and its presence (required, optional or with a default). [`tagged!`] declares
//! alternatives; a key such as `kind = "dumbbell"` chooses between them. Both generate a reader
//! that reports every problem, and a [`TableDoc`], the source of the reference, the JSON Schema and
//! the paths of sweeps.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use comity_congestion::table::nearest;

use super::document::{Entry, Node, Value, default_value};
use super::papers::known_as;
use super::problem::{Problem, ProblemKind};
use super::source::SourceSpan;

/// The form of a value, for the reference and for messages.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    /// Any text; what it means.
    Text(&'static str),
    /// One fixed word.
    Word(&'static str),
    /// `true` or `false`.
    Flag,
    /// A whole number.
    Whole { min: u64, max: u64 },
    /// A number.
    Real { min: f64, max: f64 },
    /// A number with a unit in a text: its meaning, an example, its bounds.
    Quantity {
        what: &'static str,
        example: &'static str,
        units: &'static [&'static str],
        min: String,
        max: String,
    },
    /// One of some words, with their meanings.
    Choice(Vec<(String, String)>),
    /// A table.
    Table(TableDoc),
    /// A list.
    List(Box<Self>),
    /// One of several.
    Either(Vec<Self>),
    /// The parameters of the chosen controller.
    Parameters,
    /// Any value that the swept key accepts.
    Anything,
}

/// A table as declared.
#[derive(Clone, Debug)]
pub(super) struct TableDoc {
    pub(super) title: &'static str,
    pub(super) doc: String,
    /// Where it is defined, of what has a source.
    pub(super) source: Option<&'static str>,
    pub(super) fields: Vec<FieldDoc>,
    pub(super) variants: Option<Variants>,
}

/// The alternatives of a table, chosen by the key `tag`.
#[derive(Clone, Debug)]
pub(super) struct Variants {
    pub(super) tag: &'static str,
    pub(super) default: Option<&'static str>,
    pub(super) options: Vec<(&'static str, TableDoc)>,
}

/// A key as declared.
#[derive(Clone, Debug)]
pub(super) struct FieldDoc {
    pub(super) name: &'static str,
    pub(super) doc: String,
    pub(super) shape: Shape,
    pub(super) presence: Presence,
}

/// Whether a key is required.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    Required,
    /// The meaning of its absence.
    Optional(&'static str),
    /// Its default, as TOML.
    Default(&'static str),
}

impl TableDoc {
    fn add(&mut self, name: &'static str, doc: &str, kind: &impl Kind, presence: Presence) {
        self.fields.push(FieldDoc {
            name,
            doc: doc.into(),
            shape: kind.shape(),
            presence,
        });
    }
}

impl Shape {
    /// With article, as in `expected a duration such as "40ms"`.
    pub(super) fn expected(&self) -> String {
        match self {
            Self::Text(what) => format!("a string: {what}"),
            Self::Word(word) => format!("\"{word}\""),
            Self::Flag => "true or false".into(),
            Self::Whole { min, max } => match *max {
                u64::MAX => format!("a whole number of at least {min}"),
                max => format!("a whole number from {min} to {max}"),
            },
            Self::Real { min, max } => match (*min == f64::MIN, *max == f64::MAX) {
                (true, true) => "a number".into(),
                (false, true) => format!("a number of at least {min}"),
                (true, false) => format!("a number of at most {max}"),
                (false, false) => format!("a number from {min} to {max}"),
            },
            Self::Quantity { what, example, .. } => format!("{what} such as \"{example}\""),
            Self::Choice(options) => {
                let words: Vec<_> = options.iter().map(|(word, _)| word.as_str()).collect();
                format!("one of \"{}\"", words.join("\", \""))
            }
            Self::Table(table) => format!("a table ({})", table.title),
            Self::List(item) => match &**item {
                Self::Table(table) => format!("a list of tables ({})", table.title),
                item => format!("a list, each {}", item.expected()),
            },
            Self::Either(shapes) => {
                let words: Vec<_> = shapes.iter().map(Self::expected).collect();
                words.join(", or ")
            }
            Self::Parameters => "a table of the controller's parameters".into(),
            Self::Anything => "values of the swept key".into(),
        }
    }
}

impl TableDoc {
    /// All keys, those of all alternatives included.
    pub(super) fn all_fields(&self) -> Vec<&FieldDoc> {
        let mut fields: Vec<_> = self.fields.iter().collect();
        if let Some(variants) = &self.variants {
            for (_, table) in &variants.options {
                fields.extend(table.all_fields());
            }
        }
        fields
    }
}

/// The source of the files that a scenario names.
pub trait Files {
    /// The text of a file. A relative path starts at the folder of the scenario.
    ///
    /// # Errors
    /// The error of the system if the file cannot be read.
    fn read(&self, path: &Path) -> io::Result<String>;
}

/// Files below a folder of the file system.
#[derive(Clone, Debug)]
pub struct Folder(pub PathBuf);

impl Files for Folder {
    fn read(&self, path: &Path) -> io::Result<String> {
        read_text(&self.0.join(path), MAX_IN_A_FILE)
    }
}

/// The longest trace that is read, in bytes.
const MAX_IN_A_FILE: u64 = 1 << 30;

/// Reads the text of a file. Refuses devices and pipes, which may have no end.
pub(super) fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path)?.take(limit + 1);
    let read = io::BufReader::new(file).read_to_string(&mut text);
    let length = read.map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => io::Error::new(error.kind(), "it is not text"),
        _ => error,
    })?;
    if length as u64 > limit {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it is longer than {limit} bytes"),
        ));
    }
    Ok(text)
}

/// No files at all, for scenarios that do not come from a file.
#[derive(Clone, Copy, Debug)]
pub struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &Path) -> io::Result<String> {
        Err(io::Error::new(
            io::ErrorKind::NotFound,
            "this scenario was not read from a folder",
        ))
    }
}

/// The state of a reader: the path of the current key, and the problems so far.
pub(super) struct Context<'f> {
    path: Vec<String>,
    pub(super) problems: Vec<Problem>,
    /// Keys without effect at this point of the sweep.
    pub(super) idle: Vec<Problem>,
    pub(super) files: &'f dyn Files,
    /// The names of custom controllers.
    pub(super) custom: &'f [String],
}

impl<'f> Context<'f> {
    pub(super) fn new(files: &'f dyn Files, custom: &'f [String]) -> Self {
        Self {
            path: Vec::new(),
            problems: Vec::new(),
            idle: Vec::new(),
            files,
            custom,
        }
    }

    pub(super) fn path(&self) -> String {
        self.path.join(".")
    }

    pub(super) fn within<T>(&mut self, key: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(key.into());
        let value = read(self);
        self.path.pop();
        value
    }

    /// As [`Context::within`], from the top of the document.
    pub(super) fn within_path<T>(&mut self, path: &[&str], read: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(
            &mut self.path,
            path.iter().map(|part| String::from(*part)).collect(),
        );
        let value = read(self);
        self.path = before;
        value
    }

    /// Reports a problem with the value that is being read.
    pub(super) fn report(&mut self, span: SourceSpan, kind: ProblemKind) {
        let path = self.path();
        self.problems.push(Problem::new(Some(span), &path, kind));
    }

    /// Reports a value of the wrong kind.
    pub(super) fn wrong_kind(&mut self, node: &Node, shape: &Shape) {
        self.report(
            node.span,
            ProblemKind::WrongKind {
                found: node.kind(),
                value: node.show(),
                expected: shape.expected(),
            },
        );
    }

    /// Reports a written key that has no effect beside the others. At other points of the sweep it
    /// may have one.
    pub(super) fn report_idle(&mut self, at: &At, key: &str, why: &'static str) {
        if at.has(key) {
            let (path, kind) = (at.path_of(key), ProblemKind::Idle { why });
            self.idle.push(Problem::new(at.span_of(key), &path, kind));
        }
    }

    /// Reports a problem with a key of a table that was read before.
    pub(super) fn report_at(&mut self, at: &At, key: &str, kind: ProblemKind) {
        let path = at.path_of(key);
        self.problems
            .push(Problem::new(at.span_of(key), &path, kind));
    }
}

/// The spans of a table and its keys, for checks that need several of them.
#[derive(Clone, Debug)]
pub(super) struct At {
    path: String,
    span: Option<SourceSpan>,
    keys: Vec<(String, SourceSpan)>,
}

impl At {
    /// For a table that replaces a short form: report the key that holds it.
    pub(super) const fn nowhere() -> Self {
        Self {
            path: String::new(),
            span: None,
            keys: Vec::new(),
        }
    }

    /// The span of the value of `key`, or of the table if the key is not written.
    pub(super) fn span_of(&self, key: &str) -> Option<SourceSpan> {
        self.keys
            .iter()
            .find(|(name, _)| name == key)
            .map_or(self.span, |(_, span)| Some(*span))
    }

    /// The path of `key`, or of the table if `key` is empty.
    pub(super) fn path_of(&self, key: &str) -> String {
        match (self.path.as_str(), key) {
            (path, "") => path.into(),
            ("", key) => key.into(),
            (path, key) => format!("{path}.{key}"),
        }
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.keys.iter().any(|(name, _)| name == key)
    }
}

/// A kind of value: its reader and its description.
pub(super) trait Kind {
    /// The type of the value that was read.
    type Value;
    /// The form of its values, for messages.
    fn shape(&self) -> Shape;
    /// Whether a value has the form of this kind, so that [`Kind::read`] reports its problems.
    fn takes(&self, node: &Node) -> bool;
    /// Reads a value and reports its problems. `None` only after a report.
    fn read(&self, node: &Node, cx: &mut Context<'_>) -> Option<Self::Value>;
}

/// A field of a table: a kind, and whether it is required.
pub(super) trait Field {
    type Output;
    fn describe(&self, name: &'static str, doc: &str, table: &mut TableDoc);
    fn read(
        &self,
        name: &'static str,
        reader: &mut TableReader<'_, '_, '_>,
    ) -> Option<Self::Output>;
}

/// A required key.
pub(super) struct Required<K>(pub(super) K);

impl<K: Kind> Field for Required<K> {
    type Output = K::Value;

    fn describe(&self, name: &'static str, doc: &str, table: &mut TableDoc) {
        table.add(name, doc, &self.0, Presence::Required);
    }

    fn read(
        &self,
        name: &'static str,
        reader: &mut TableReader<'_, '_, '_>,
    ) -> Option<Self::Output> {
        match reader.take(name) {
            Some(node) => reader.cx.within(name, |cx| self.0.read(node, cx)),
            None => {
                let span = reader.span;
                let expected = self.0.shape().expected();
                reader.cx.within(name, |cx| {
                    cx.report(span, ProblemKind::Missing { expected });
                });
                None
            }
        }
    }
}

/// An optional key, with the meaning of its absence.
pub(super) struct Optional<K>(pub(super) K, pub(super) &'static str);

impl<K: Kind> Field for Optional<K> {
    type Output = Option<K::Value>;

    fn describe(&self, name: &'static str, doc: &str, table: &mut TableDoc) {
        table.add(name, doc, &self.0, Presence::Optional(self.1));
    }

    fn read(
        &self,
        name: &'static str,
        reader: &mut TableReader<'_, '_, '_>,
    ) -> Option<Self::Output> {
        match reader.take(name) {
            Some(node) => reader.cx.within(name, |cx| self.0.read(node, cx)).map(Some),
            None => Some(None),
        }
    }
}

/// An optional key with a default, as TOML.
pub(super) struct Default<K>(pub(super) K, pub(super) &'static str);

impl<K: Kind> Field for Default<K> {
    type Output = K::Value;

    fn describe(&self, name: &'static str, doc: &str, table: &mut TableDoc) {
        table.add(name, doc, &self.0, Presence::Default(self.1));
    }

    fn read(
        &self,
        name: &'static str,
        reader: &mut TableReader<'_, '_, '_>,
    ) -> Option<Self::Output> {
        let written = reader.take(name);
        let span = reader.span;
        reader.cx.within(name, |cx| match written {
            Some(node) => self.0.read(node, cx),
            None => self.0.read(&default_value(self.1, span)?, cx),
        })
    }
}

/// All keys of another declaration, as if declared here.
pub(super) struct Keys<T>(std::marker::PhantomData<T>);

impl<T: Table> Keys<T> {
    pub(super) const OF: Self = Self(std::marker::PhantomData);
}

impl<T: Table> Field for Keys<T> {
    type Output = T;

    fn describe(&self, _: &'static str, _: &str, table: &mut TableDoc) {
        T::describe_keys(table);
    }

    fn read(&self, _: &'static str, reader: &mut TableReader<'_, '_, '_>) -> Option<Self::Output> {
        T::read_keys(reader)
    }
}

/// Something declared with [`table!`] or [`tagged!`].
pub(super) trait Table: Sized {
    const TITLE: &'static str;
    /// Where it is defined, of what has a source.
    const SOURCE: Option<&'static str> = None;
    fn doc() -> String;
    fn describe_keys(table: &mut TableDoc);
    fn read_keys(reader: &mut TableReader<'_, '_, '_>) -> Option<Self>;

    fn describe() -> TableDoc {
        let mut table = TableDoc {
            title: Self::TITLE,
            doc: Self::doc(),
            source: Self::SOURCE,
            fields: Vec::new(),
            variants: None,
        };
        Self::describe_keys(&mut table);
        table
    }

    fn read_table(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        let Some(entries) = node.entries() else {
            cx.wrong_kind(node, &Shape::Table(Self::describe()));
            return None;
        };
        let mut reader = TableReader {
            entries,
            span: node.span,
            cx,
            asked: Vec::new(),
            variant_unknown: false,
        };
        let value = Self::read_keys(&mut reader);
        let complete = reader.finish(Self::describe);
        value.filter(|_| complete)
    }
}

/// The kind of a table.
pub(super) struct Nested<T>(std::marker::PhantomData<T>);

impl<T: Table> Nested<T> {
    pub(super) const KIND: Self = Self(std::marker::PhantomData);
}

impl<T: Table> Kind for Nested<T> {
    type Value = T;

    fn shape(&self) -> Shape {
        Shape::Table(T::describe())
    }

    fn takes(&self, node: &Node) -> bool {
        matches!(node.value, Value::Table(_))
    }

    fn read(&self, node: &Node, cx: &mut Context<'_>) -> Option<T> {
        T::read_table(node, cx)
    }
}

/// Reads the values of a table, and records which keys were read.
pub(super) struct TableReader<'n, 'c, 'f> {
    entries: &'n [Entry],
    span: SourceSpan,
    pub(super) cx: &'c mut Context<'f>,
    asked: Vec<&'static str>,
    variant_unknown: bool,
}

impl<'n> TableReader<'n, '_, '_> {
    pub(super) fn take(&mut self, key: &'static str) -> Option<&'n Node> {
        self.asked.push(key);
        self.entries
            .iter()
            .find(|entry| entry.key == key)
            .map(|entry| &entry.node)
    }

    pub(super) fn written(&self) -> At {
        At {
            path: self.cx.path(),
            span: Some(self.span),
            keys: self
                .entries
                .iter()
                .map(|entry| (entry.key.clone(), entry.node.span))
                .collect(),
        }
    }

    /// Reads the tag of alternatives: one of `options`.
    pub(super) fn tag(
        &mut self,
        tag: &'static str,
        default: Option<&'static str>,
        options: &[&'static str],
    ) -> Option<usize> {
        let known = || options.iter().map(|word| String::from(*word)).collect();
        let found = match self.take(tag) {
            Some(node) => {
                let index = node
                    .text()
                    .and_then(|text| options.iter().position(|option| *option == text));
                if index.is_none() {
                    let kind = match node.text() {
                        Some(text) => ProblemKind::UnknownChoice {
                            value: node.show(),
                            nearest: nearest(text, options.iter().copied()).map(Into::into),
                            known: known(),
                            elsewhere: known_as(text),
                        },
                        None => ProblemKind::WrongKind {
                            found: node.kind(),
                            value: node.show(),
                            expected: format!("one of \"{}\"", options.join("\", \"")),
                        },
                    };
                    self.cx.within(tag, |cx| cx.report(node.span, kind));
                }
                index
            }
            None => {
                let index =
                    default.and_then(|default| options.iter().position(|word| *word == default));
                if index.is_none() {
                    let span = self.span;
                    let expected = format!("one of \"{}\"", options.join("\", \""));
                    self.cx.within(tag, |cx| {
                        cx.report(span, ProblemKind::Missing { expected });
                    });
                }
                index
            }
        };
        self.variant_unknown |= found.is_none();
        found
    }

    /// Reports the keys that were not read. Returns whether all keys were read.
    fn finish(&mut self, describe: impl Fn() -> TableDoc) -> bool {
        if self.variant_unknown {
            return false;
        }
        let mut complete = true;
        for entry in self.entries {
            if self.asked.contains(&entry.key.as_str()) {
                continue;
            }
            complete = false;
            let elsewhere = describe().variants.and_then(|variants| {
                variants
                    .options
                    .iter()
                    .find(|(_, table)| {
                        table
                            .all_fields()
                            .iter()
                            .any(|field| field.name == entry.key)
                    })
                    .map(|(value, _)| (variants.tag.to_owned(), (*value).to_owned()))
            });
            let kind = ProblemKind::UnknownKey {
                known: self.asked.iter().map(|key| (*key).to_owned()).collect(),
                nearest: nearest(&entry.key, self.asked.iter().copied()).map(Into::into),
                elsewhere,
            };
            self.cx
                .within(&entry.key, |cx| cx.report(entry.key_span, kind));
        }
        complete
    }
}

/// The name of a list item in paths: its `group` or `name`, or its number.
pub(super) fn item_label(index: usize, item: &Node) -> String {
    ["name", "group"]
        .iter()
        .find_map(|key| item.get(key)?.text())
        .filter(|text| !text.is_empty() && text.len() <= 64 && !text.contains(['.', '*', '{', ' ']))
        .map_or_else(|| index.to_string(), Into::into)
}

/// Whether a value is written as a text.
pub(super) fn is_text(node: &Node) -> bool {
    matches!(node.value, Value::Text(_))
}

/// Joins the lines of a documentation comment into one paragraph.
pub(super) fn paragraph(lines: &[&str]) -> String {
    lines
        .iter()
        .map(|line| line.trim())
        .collect::<Vec<_>>()
        .join(" ")
        .trim()
        .to_owned()
}

/// Declares a table: a structure with a field for each key, and its [`Table`]. A source may follow
/// the title: `("a playback", from "TCP-Real, section 3")`.
macro_rules! table {
    (
        $(#[doc = $doc:literal])*
        struct $Name:ident ($title:literal $(, from $source:literal)?) {
            $(
                $(#[doc = $field_doc:literal])*
                $field:ident : $type:ty = $spec:expr;
            )*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug)]
        pub(in crate::scenario) struct $Name {
            #[allow(dead_code, reason = "not every table has checks across its keys")]
            pub(in crate::scenario) written: $crate::scenario::schema::At,
            $(
                $(#[doc = $field_doc])*
                pub(in crate::scenario) $field: $type,
            )*
        }

        impl $crate::scenario::schema::Table for $Name {
            const TITLE: &'static str = $title;
            $(const SOURCE: Option<&'static str> = Some($source);)?

            fn doc() -> String {
                $crate::scenario::schema::paragraph(&[$($doc),*])
            }

            #[allow(unused_variables, reason = "a table may have no keys of its own")]
            fn describe_keys(table: &mut $crate::scenario::schema::TableDoc) {
                $(
                    $crate::scenario::schema::Field::describe(
                        &$spec,
                        stringify!($field),
                        &$crate::scenario::schema::paragraph(&[$($field_doc),*]),
                        table,
                    );
                )*
            }

            fn read_keys(
                reader: &mut $crate::scenario::schema::TableReader<'_, '_, '_>,
            ) -> Option<Self> {
                $(
                    let $field = $crate::scenario::schema::Field::read(
                        &$spec,
                        stringify!($field),
                        reader,
                    );
                )*
                Some(Self {
                    written: reader.written(),
                    $($field: $field?,)*
                })
            }
        }
    };
}
pub(super) use table;

/// Declares alternatives that a key chooses from: an enumeration, and its [`Table`].
macro_rules! tagged {
    (
        $(#[doc = $doc:literal])*
        enum $Name:ident ($title:literal) by $tag:ident $(or $default:literal)? {
            $(
                $option:literal => $Variant:ident ( $Table:ty );
            )*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug)]
        #[allow(clippy::large_enum_variant, reason = "there is one for each table of a file")]
        pub(in crate::scenario) enum $Name {
            $(
                #[doc = concat!("`", $option, "`")]
                #[allow(dead_code, reason = "an alternative may have no keys")]
                $Variant($Table),
            )*
        }

        impl $crate::scenario::schema::Table for $Name {
            const TITLE: &'static str = $title;

            fn doc() -> String {
                $crate::scenario::schema::paragraph(&[$($doc),*])
            }

            fn describe_keys(table: &mut $crate::scenario::schema::TableDoc) {
                let default: &[&'static str] = &[$($default)?];
                table.variants = Some($crate::scenario::schema::Variants {
                    tag: stringify!($tag),
                    default: default.first().copied(),
                    options: vec![
                        $(($option, <$Table as $crate::scenario::schema::Table>::describe()),)*
                    ],
                });
            }

            fn read_keys(
                reader: &mut $crate::scenario::schema::TableReader<'_, '_, '_>,
            ) -> Option<Self> {
                let default: &[&'static str] = &[$($default)?];
                let options: &[&'static str] = &[$($option),*];
                let chosen = reader.tag(
                    stringify!($tag),
                    default.first().copied(),
                    options,
                )?;
                $(
                    if options.get(chosen) == Some(&$option) {
                        return <$Table as $crate::scenario::schema::Table>::read_keys(reader)
                            .map(Self::$Variant);
                    }
                )*
                None
            }
        }
    };
}
pub(super) use tagged;
