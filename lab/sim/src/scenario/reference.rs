//! The reference of scenario files, from the tables that read them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::document::Node;
use super::papers::APPLICATIONS;
use super::parameters;
use super::schema::{FieldDoc, Presence, Shape, Table, TableDoc};
use super::tables::ScenarioFile;
use super::tables::flow::PRESETS;

/// The reference as Markdown.
pub fn markdown() -> String {
    let mut page = tables(INTRODUCTION, &ScenarioFile::describe());
    page.push_str(&applications());
    wrapped(&page)
}

/// Wraps paragraphs and items at 100 columns, and leaves headings and tables as they are.
fn wrapped(page: &str) -> String {
    let block = |block: &str| {
        let hanging = if block.starts_with("- ") { "  " } else { "" };
        let options = textwrap::Options::new(100)
            .subsequent_indent(hanging)
            .word_splitter(textwrap::WordSplitter::NoHyphenation);
        match block.starts_with(['|', '#']) {
            true => block.to_owned(),
            false => textwrap::fill(&block.trim_end().replace('\n', " "), options),
        }
    };
    let blocks: Vec<String> = page.trim_end().split("\n\n").map(block).collect();
    blocks.join("\n\n") + "\n"
}

/// The applications of the papers.
fn applications() -> String {
    let mut text = String::from(
        "\n## Applications of the papers\n\nThe keys that make a `[[flow]]` an application of one of the papers. `comity list NAME`\n\
         prints each with all of its parameters.\n\n\
         | name | meaning | source | keys |\n| --- | --- | --- | --- |\n",
    );
    for application in APPLICATIONS {
        let keys: Vec<String> = application
            .keys
            .iter()
            .map(|(key, value)| format!("`{key} = {value}`"))
            .collect();
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} |",
            application.name,
            cell(application.summary),
            cell(application.source),
            cell(&keys.join("<br>"))
        );
    }
    text
}

/// An introduction and a table with all entries.
pub(super) fn tables(introduction: &str, table: &TableDoc) -> String {
    let mut page = Page::default();
    page.text.push_str(introduction);
    page.table(table, 2);
    while !page.waiting.is_empty() {
        for table in std::mem::take(&mut page.waiting) {
            page.table(&table, 2);
        }
    }
    page.text
}

/// A key of a table, as the reference describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its name.
    pub name: String,
    /// The values that it accepts.
    pub values: String,
    /// Its default, or what applies without the key; `None` if the key is required.
    pub default: Option<String>,
    /// What it is.
    pub summary: String,
}

/// The keys of the table with this title in the reference, such as `a time-line`. In a table with
/// alternatives, `choice` chooses one, and only the keys count that the other alternatives do not
/// share.
///
/// `None` if there is no such table or choice.
pub fn keys(title: &str, choice: Option<&str>) -> Option<Vec<Key>> {
    let table = find(&ScenarioFile::describe(), title)?;
    let fields = match (choice, table.variants) {
        (None, _) => table.fields,
        (Some(choice), Some(variants)) => {
            let mut options = variants.options.into_iter();
            options.find(|(value, _)| *value == choice)?.1.fields
        }
        (Some(_), None) => return None,
    };
    Some(fields.iter().map(key).collect())
}

/// An alternative of a table, as the reference describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The word that chooses it.
    pub name: &'static str,
    /// What it is.
    pub summary: String,
    /// Its source, if it has one.
    pub source: Option<&'static str>,
}

/// The alternatives of the table with this title in the reference, such as `a workload`.
///
/// `None` if there is no such table, or it has no alternatives.
pub fn choices(title: &str) -> Option<Vec<Choice>> {
    let options = find(&ScenarioFile::describe(), title)?.variants?.options;
    let choices = options.into_iter().map(|(name, table)| Choice {
        name,
        summary: table.doc.replace('`', ""),
        source: table.source,
    });
    Some(choices.collect())
}

/// The keys of the table `node` that is the value of the key `name` of a flow.
pub(super) fn keys_with(name: &str, node: &Node) -> Vec<Key> {
    let Some(flow) = find(&ScenarioFile::describe(), "[[flow]]") else {
        return Vec::new();
    };
    let fields = flow.all_fields();
    let field = fields.into_iter().find(|field| field.name == name);
    let Some(Shape::Table(table)) = field.map(|field| &field.shape) else {
        return Vec::new();
    };
    let mut keys: Vec<Key> = table.fields.iter().map(key).collect();
    if let Some(variants) = &table.variants {
        let chosen = node.get(variants.tag).and_then(Node::text);
        let mut options = variants.options.iter();
        let option = options.find(|(value, _)| Some(*value) == chosen.or(variants.default));
        keys.extend(
            option
                .into_iter()
                .flat_map(|(_, table)| table.fields.iter().map(key)),
        );
    }
    keys
}

fn key(field: &FieldDoc) -> Key {
    Key {
        name: field.name.into(),
        values: match &field.shape {
            Shape::Table(table) => table.title.into(),
            shape => value(shape).replace('`', ""),
        },
        default: match field.presence {
            Presence::Required => None,
            Presence::Optional(meaning) => Some(meaning.replace('`', "")),
            Presence::Default(value) => Some(value.into()),
        },
        summary: described(field).replace('`', ""),
    }
}

/// The keys of a flow that the TCP preset `name` sets, with their values. Keys of the table `rto`
/// begin with `rto.`.
///
/// `None` if there is no such preset.
pub fn preset(name: &str) -> Option<Vec<(&'static str, String)>> {
    let preset = PRESETS.iter().find(|(known, ..)| *known == name)?.1;
    Some(preset.settings())
}

/// The table with this title, in `table` or below it.
fn find(table: &TableDoc, title: &str) -> Option<TableDoc> {
    fn in_shape(shape: &Shape, title: &str) -> Option<TableDoc> {
        match shape {
            Shape::Table(table) => find(table, title),
            Shape::List(item) => in_shape(item, title),
            Shape::Either(shapes) => shapes.iter().find_map(|shape| in_shape(shape, title)),
            _ => None,
        }
    }
    if table.title == title {
        return Some(table.clone());
    }
    let fields = table.all_fields();
    fields
        .into_iter()
        .find_map(|field| in_shape(&field.shape, title))
}

/// The description of a key, and of each word that it accepts.
fn described(field: &FieldDoc) -> String {
    let mut doc = field.doc.clone();
    if let Shape::Choice(options) = &field.shape {
        for (index, (word, meaning)) in options.iter().enumerate() {
            let separator = if index == 0 { "" } else { ";" };
            let _ = write!(
                doc,
                "{separator} `\"{word}\"`: {}",
                meaning.trim_end_matches('.')
            );
        }
        doc.push('.');
    }
    doc
}

const INTRODUCTION: &str = "\
# Scenario files

Generated from the tables in `lab/sim/src/scenario/tables`;
`COMITY_UPDATE=1 cargo test -p comity-sim --test it scenario_reference` updates it, and
`comity sim schema` prints it.

A scenario is a TOML file. Every quantity has its unit in the value: durations such as `\"40ms\"`
(`ns`, `us`, `ms`, `s`, `min`, `h`), rates in bits per second such as `\"1.5Mbps\"` (`bps`, `kbps`,
`Mbps`, `Gbps`), amounts of data such as `\"1500B\"` (`B`, `kB`, `MB`, `GB` and `KiB`, `MiB`, `GiB`).
Windows and queues also take packets: `10` or `\"10 packets\"`. An unknown key is an error.

Paths of keys, in sweeps and in `comity sim run --set`, join keys with dots. The `name`, the `group`
or the number from 0 identifies an item of a list, and `*` means all items: `flow.tcp.rwnd`,
`topology.bottleneck.queue`, `flow.*.start.spread`.

Nodes and links have names, which `comity sim trace --link` accepts. The source of a flow called
`tcp-0` is the node `tcp-0.source`, with the link `tcp-0.source` to its router. Its destination is
`tcp-0.destination`. The reverse direction of every link has the suffix `.reverse`.
";

#[derive(Default)]
struct Page {
    text: String,
    seen: Vec<&'static str>,
    waiting: Vec<TableDoc>,
}

impl Page {
    fn line(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn table(&mut self, table: &TableDoc, depth: usize) {
        if self.seen.contains(&table.title) {
            return;
        }
        self.seen.push(table.title);
        self.line(&format!(
            "\n{} {}\n\n{}",
            "#".repeat(depth),
            capitalised(table.title),
            table.doc
        ));
        self.fields(table);
        if let Some(variants) = &table.variants {
            let default = match variants.default {
                Some(default) => format!(", default \"{default}\""),
                None => ", required".into(),
            };
            self.line(&format!(
                "\n`{}` selects the other keys{default}:",
                variants.tag
            ));
            for (value, option) in &variants.options {
                let source = option.source.map(|source| format!(" Source: {source}."));
                self.line(&format!(
                    "\n- `{} = \"{value}\"`: {}{}",
                    variants.tag,
                    option.doc,
                    source.unwrap_or_default()
                ));
            }
            for (value, option) in &variants.options {
                if option.fields.is_empty() && option.variants.is_none() {
                    continue;
                }
                self.line(&format!(
                    "\n{} `{} = \"{value}\"`",
                    "#".repeat(depth + 1),
                    variants.tag
                ));
                self.fields(option);
            }
        }
    }

    fn fields(&mut self, table: &TableDoc) {
        if table.fields.is_empty() {
            return;
        }
        self.line("\n| key | value | default | meaning |");
        self.line("| --- | --- | --- | --- |");
        for field in &table.fields {
            let presence = match field.presence {
                Presence::Required => "**required**".into(),
                Presence::Optional(meaning) => cell(meaning),
                Presence::Default(value) => format!("`{}`", cell(value)),
            };
            self.line(&format!(
                "| `{}` | {} | {presence} | {} |",
                field.name,
                cell(&value(&field.shape)),
                cell(&described(field))
            ));
        }
        for field in &table.fields {
            self.queue(&field.shape);
        }
    }

    fn queue(&mut self, shape: &Shape) {
        match shape {
            Shape::Table(table) => self.waiting.push(table.clone()),
            Shape::List(item) => self.queue(item),
            Shape::Either(shapes) => {
                for shape in shapes {
                    self.queue(shape);
                }
            }
            _ => {}
        }
    }
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some('[') | None => format!("`{text}`"),
        Some(first) => first.to_uppercase().chain(chars).collect(),
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// The values of a key in a few words.
fn value(shape: &Shape) -> String {
    match shape {
        Shape::Text(what) => (*what).into(),
        Shape::Word(word) => format!("`\"{word}\"`"),
        Shape::Flag => "`true` or `false`".into(),
        Shape::Whole { min, max } => format!("whole number, {}", bounds(*min, *max)),
        Shape::Real { min, max } => format!("number{}", real_bounds(*min, *max)),
        Shape::Quantity {
            what,
            example,
            min,
            max,
            ..
        } => format!(
            "{}, `\"{example}\"`, {min} to {max}",
            what.trim_start_matches("a ").trim_start_matches("an ")
        ),
        Shape::Choice(options) => options
            .iter()
            .map(|(word, _)| format!("`\"{word}\"`"))
            .collect::<Vec<_>>()
            .join(", "),
        Shape::Table(table) => format!("table: {}", link(table.title)),
        Shape::List(item) => match &**item {
            Shape::Table(table) => format!("tables: {}", link(table.title)),
            item => format!("list: {}", value(item)),
        },
        Shape::Either(shapes) => shapes.iter().map(value).collect::<Vec<_>>().join("; or "),
        Shape::Parameters => "table: see [controllers](controllers.md)".into(),
        Shape::Anything => "values of the swept key".into(),
    }
}

fn bounds(min: u64, max: u64) -> String {
    match max {
        u64::MAX => format!("at least {min}"),
        max => format!("{min} to {max}"),
    }
}

/// The bounds of a number. The largest number in either direction means no bound.
fn real_bounds(min: f64, max: f64) -> String {
    match (min == f64::MIN, max == f64::MAX) {
        (true, true) => String::new(),
        (false, true) => format!(", at least {min}"),
        (true, false) => format!(", at most {max}"),
        (false, false) => format!(", {min} to {max}"),
    }
}

fn link(title: &str) -> String {
    let anchor: String = title
        .to_lowercase()
        .chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            '-' | '_' => Some(c),
            c => c.is_alphanumeric().then_some(c),
        })
        .collect();
    let title = if title.starts_with('[') {
        format!("`{title}`")
    } else {
        title.into()
    };
    format!("[{title}](#{anchor})")
}

/// The reference as a JSON Schema (draft 2020-12).
///
/// It accepts a little more than the reader: it has neither the parameters of each controller nor
/// rules across keys.
pub fn json_schema() -> Value {
    let mut definitions = BTreeMap::new();
    let root = table_schema(&ScenarioFile::describe(), &mut definitions);
    let mut schema = Map::new();
    schema.insert(
        "$schema".into(),
        "https://json-schema.org/draft/2020-12/schema".into(),
    );
    schema.insert("title".into(), "Comity scenario".into());
    if let Value::Object(root) = root {
        schema.extend(root);
    }
    let definitions: Map<_, _> = definitions
        .into_iter()
        .filter_map(|(name, schema)| Some((name, schema?)))
        .collect();
    schema.insert("$defs".into(), Value::Object(definitions));
    Value::Object(schema)
}

/// The schemas of tables by title; `None` while one is being made.
type Definitions = BTreeMap<String, Option<Value>>;

fn table_schema(table: &TableDoc, definitions: &mut Definitions) -> Value {
    let alternatives: Vec<Alternative<'_>> = alternatives(table);
    let mut schemas: Vec<Value> = alternatives
        .iter()
        .map(|alternative| {
            let mut properties = Map::new();
            let mut required = Vec::new();
            if let Some((tag, value, default)) = alternative.tag {
                properties.insert(tag.into(), json!({ "const": value }));
                if !default {
                    required.push(Value::from(tag));
                }
            }
            for field in &alternative.fields {
                let mut schema = shape_schema(&field.shape, definitions);
                if let Value::Object(schema) = &mut schema {
                    let mut doc = field.doc.clone();
                    if let Presence::Optional(meaning) = field.presence {
                        let _ = write!(doc, " When left out: {meaning}.");
                    }
                    schema.insert("description".into(), doc.into());
                    if let Presence::Default(text) = field.presence {
                        let default = serde_json::from_str(text).unwrap_or(Value::Null);
                        schema.insert("default".into(), default);
                    }
                }
                if field.presence == Presence::Required {
                    required.push(field.name.into());
                }
                properties.insert(field.name.into(), schema);
            }
            json!({
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": false,
            })
        })
        .collect();
    let mut schema = match schemas.len() {
        1 => schemas.remove(0),
        _ => json!({ "oneOf": schemas }),
    };
    if let Value::Object(schema) = &mut schema {
        schema.insert("description".into(), table.doc.clone().into());
    }
    schema
}

/// One choice of a table's tag, with all its keys.
struct Alternative<'t> {
    /// The tag, its value, and whether that is the default.
    tag: Option<(&'static str, &'static str, bool)>,
    fields: Vec<&'t FieldDoc>,
}

fn alternatives(table: &TableDoc) -> Vec<Alternative<'_>> {
    match &table.variants {
        None => vec![Alternative {
            tag: None,
            fields: table.fields.iter().collect(),
        }],
        Some(variants) => variants
            .options
            .iter()
            .map(|(value, option)| Alternative {
                tag: Some((variants.tag, value, variants.default == Some(value))),
                fields: table.fields.iter().chain(option.all_fields()).collect(),
            })
            .collect(),
    }
}

fn shape_schema(shape: &Shape, definitions: &mut Definitions) -> Value {
    match shape {
        Shape::Text(_) => json!({ "type": "string" }),
        Shape::Word(word) => json!({ "const": word }),
        Shape::Flag => json!({ "type": "boolean" }),
        Shape::Whole { min, max: u64::MAX } => json!({ "type": "integer", "minimum": min }),
        Shape::Whole { min, max } => {
            json!({ "type": "integer", "minimum": min, "maximum": max })
        }
        Shape::Real { min, max } => {
            let mut schema = json!({ "type": "number" });
            if *min != f64::MIN {
                schema["minimum"] = json!(min);
            }
            if *max != f64::MAX {
                schema["maximum"] = json!(max);
            }
            schema
        }
        Shape::Quantity {
            units,
            example,
            min,
            max,
            ..
        } => json!({
            "type": "string",
            "pattern": format!(r"^\s*[0-9][0-9_]*(\.[0-9_]*)?\s*({})\s*$", units.join("|")),
            "examples": [example],
            "$comment": format!("{min} to {max}"),
        }),
        Shape::Choice(options) => {
            let words: Vec<_> = options.iter().map(|(word, _)| word.as_str()).collect();
            json!({ "enum": words })
        }
        Shape::Table(table) => {
            let name: String = table
                .title
                .chars()
                .map(|c| if c.is_alphanumeric() { c } else { '_' })
                .collect::<String>()
                .trim_matches('_')
                .to_owned();
            if !definitions.contains_key(&name) {
                definitions.insert(name.clone(), None);
                let schema = table_schema(table, definitions);
                definitions.insert(name.clone(), Some(schema));
            }
            json!({ "$ref": format!("#/$defs/{name}") })
        }
        Shape::List(item) => json!({
            "type": "array",
            "items": shape_schema(item, definitions),
        }),
        Shape::Either(shapes) => {
            let schemas: Vec<_> = shapes
                .iter()
                .map(|shape| shape_schema(shape, definitions))
                .collect();
            json!({ "anyOf": schemas })
        }
        Shape::Parameters => json!({
            "type": "object",
            "propertyNames": { "enum": parameters::names() },
        }),
        Shape::Anything => json!({}),
    }
}
