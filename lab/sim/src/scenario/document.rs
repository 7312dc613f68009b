//! A TOML document as a tree of nodes with their spans in the text.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::{Problem, ProblemKind};
use super::source::{MAX_TEXT, SourceSpan, Sources};

/// A value and its span in the text.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) span: SourceSpan,
    pub(super) value: Value,
}

/// A value as written.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Text(String),
    Integer(i64),
    /// An integer beyond 64 bits, as written.
    HugeInteger(String),
    Float(f64),
    Boolean(bool),
    Date(String),
    List(Vec<Node>),
    Table(Vec<Entry>),
}

/// A key of a table with its value.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) key_span: SourceSpan,
    pub(super) node: Node,
}

impl Node {
    pub(super) fn entries(&self) -> Option<&[Entry]> {
        match &self.value {
            Value::Table(entries) => Some(entries),
            _ => None,
        }
    }

    pub(super) fn items(&self) -> Option<&[Self]> {
        match &self.value {
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        self.entries()?
            .iter()
            .find(|entry| entry.key == key)
            .map(|entry| &entry.node)
    }

    /// The same value, with `span` for all its nodes.
    pub(super) fn moved_to(&self, span: SourceSpan) -> Self {
        let value = match &self.value {
            Value::List(items) => {
                Value::List(items.iter().map(|item| item.moved_to(span)).collect())
            }
            Value::Table(entries) => Value::Table(
                entries
                    .iter()
                    .map(|entry| Entry {
                        key: entry.key.clone(),
                        key_span: span,
                        node: entry.node.moved_to(span),
                    })
                    .collect(),
            ),
            plain => plain.clone(),
        };
        Self { span, value }
    }

    /// The kind of value with its article, for messages.
    pub(super) fn kind(&self) -> &'static str {
        match self.value {
            Value::Text(_) => "a string",
            Value::Integer(_) | Value::HugeInteger(_) => "an integer",
            Value::Float(_) => "a number",
            Value::Boolean(_) => "a boolean",
            Value::Date(_) => "a date",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }

    /// The value as one line of TOML, shortened if it is long.
    pub(super) fn show(&self) -> String {
        const LONGEST: usize = 60;
        let mut text = String::new();
        self.write(&mut text, LONGEST + 1);
        if text.chars().count() > LONGEST {
            text = text.chars().take(LONGEST - 3).collect();
            text.push_str("...");
        }
        text
    }

    /// The whole value as one line of TOML.
    pub(super) fn to_line(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, usize::MAX / 4);
        text
    }

    /// Writes the value, or at least `enough` bytes of it.
    fn write(&self, out: &mut String, enough: usize) {
        if out.len() > 4 * enough {
            return;
        }
        match &self.value {
            Value::Text(text) => {
                out.push('"');
                for c in text.chars().take(enough) {
                    match c {
                        '"' => out.push_str("\\\""),
                        '\\' => out.push_str("\\\\"),
                        c if c.is_control() => out.extend(c.escape_default()),
                        c => out.push(c),
                    }
                }
                out.push('"');
            }
            Value::Integer(value) => out.push_str(&value.to_string()),
            Value::HugeInteger(text) | Value::Date(text) => {
                out.extend(text.chars().take(enough));
            }
            Value::Float(value) => out.push_str(&value.to_string()),
            Value::Boolean(value) => out.push_str(&value.to_string()),
            Value::List(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push_str(", ");
                    }
                    item.write(out, enough);
                }
                out.push(']');
            }
            Value::Table(entries) => {
                out.push_str("{ ");
                for (index, entry) in entries.iter().enumerate() {
                    if index > 0 {
                        out.push_str(", ");
                    }
                    out.extend(entry.key.chars().take(enough));
                    out.push_str(" = ");
                    entry.node.write(out, enough);
                }
                out.push_str(" }");
            }
        }
    }
}

/// Reads a whole document. If the text is not TOML, reports all errors and reads nothing.
pub(super) fn parse(sources: &mut Sources, name: &str, text: &str) -> Result<Node, Vec<Problem>> {
    let source = sources.add(name, text);
    if text.len() > MAX_TEXT {
        return Err(vec![Problem::new(
            None,
            "",
            ProblemKind::TextTooLong { limit: MAX_TEXT },
        )]);
    }
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        Ok(table_node(source, &table))
    } else {
        Err(errors
            .iter()
            .map(|error| syntax(source, text, error))
            .collect())
    }
}

/// Reads one value, as after the `=` of an assignment.
pub(super) fn parse_value(
    sources: &mut Sources,
    name: &str,
    text: &str,
) -> Result<Node, Vec<Problem>> {
    let source = sources.add(name, text);
    let (value, errors) = DeValue::parse_recoverable(text);
    if errors.is_empty() {
        Ok(node(source, &value))
    } else {
        Err(errors
            .iter()
            .map(|error| syntax(source, text, error))
            .collect())
    }
}

/// The value of a default in the schema. Its nodes have the span of the table without the key.
pub(super) fn default_value(text: &str, span: SourceSpan) -> Option<Node> {
    let value = DeValue::parse(text).ok()?;
    Some(node(0, &value).moved_to(span))
}

fn syntax(source: u32, text: &str, error: &toml::de::Error) -> Problem {
    let range = error.span().unwrap_or(0..0);
    let end = range.end.min(text.len());
    Problem::new(
        Some(SourceSpan::new(source, range.start.min(end)..end)),
        "",
        ProblemKind::Syntax {
            message: error.message().into(),
        },
    )
}

fn table_node(source: u32, table: &Spanned<DeTable<'_>>) -> Node {
    Node {
        span: SourceSpan::new(source, table.span()),
        value: entries(source, table.get_ref()),
    }
}

fn entries(source: u32, table: &DeTable<'_>) -> Value {
    Value::Table(
        table
            .iter()
            .map(|(key, value)| Entry {
                key: key.get_ref().to_string(),
                key_span: SourceSpan::new(source, key.span()),
                node: node(source, value),
            })
            .collect(),
    )
}

fn node(source: u32, value: &Spanned<DeValue<'_>>) -> Node {
    let plain = match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(digits) => match i64::from_str_radix(digits.as_str(), digits.radix()) {
            Ok(integer) => Value::Integer(integer),
            Err(_) => Value::HugeInteger(digits.as_str().into()),
        },
        DeValue::Float(digits) => Value::Float(digits.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(value) => Value::Boolean(*value),
        DeValue::Datetime(date) => Value::Date(date.to_string()),
        DeValue::Array(items) => Value::List(items.iter().map(|item| node(source, item)).collect()),
        DeValue::Table(table) => entries(source, table),
    };
    Node {
        span: SourceSpan::new(source, value.span()),
        value: plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_stand_where_they_were_written() {
        let mut sources = Sources::default();
        let text = "[a]\nb = { c = [1, 0x1F] }\n";
        let root = parse(&mut sources, "x", text).unwrap();
        let list = root.get("a").unwrap().get("b").unwrap().get("c").unwrap();
        let second = &list.items().unwrap()[1];
        assert_eq!(&text[second.span.range()], "0x1F");
        assert!(matches!(second.value, Value::Integer(31)));
        assert_eq!(root.show(), "{ a = { b = { c = [1, 31] } } }");
    }

    #[test]
    fn all_mistakes_of_grammar_are_reported() {
        let mut sources = Sources::default();
        let problems = parse(&mut sources, "x", "a = \nb = 1\nc = = 2\n").unwrap_err();
        let mut lines: Vec<_> = problems
            .iter()
            .map(|problem| sources.line_and_column(problem.span.unwrap()).unwrap().0)
            .collect();
        lines.sort_unstable();
        assert_eq!((lines.first(), lines.last()), (Some(&1), Some(&3)));
    }

    #[test]
    fn long_values_are_cut() {
        let mut sources = Sources::default();
        let text = format!("a = [{}]", "1, ".repeat(100_000));
        let shown = parse(&mut sources, "x", &text).unwrap().show();
        assert_eq!(shown.chars().count(), 60);
        assert!(shown.ends_with("..."));
    }
}
