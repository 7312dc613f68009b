//! Paths of keys, as sweeps and overrides use them.

use comity_congestion::table::nearest;

use super::document::{Entry, Node, Value};
use super::problem::ProblemKind;
use super::schema::{FieldDoc, Shape, TableDoc, item_label};
use crate::report::is_within;

/// A key of one document: names of keys, and numbers of list items.
pub(super) type Location = Vec<String>;

/// Sets `value` at `path`, creates missing tables on the path, and returns the keys that were set.
///
/// A `name`, a `group` or a number from 0 chooses an item of a list, and `*` chooses all. `net`
/// chooses the groups `net+long` and `net+short`, because results count them together under that
/// name.
///
/// # Errors
/// If the schema has no such key, or the list no such item.
pub(super) fn assign(
    root: &mut Node,
    shape: &Shape,
    path: &str,
    value: &Node,
) -> Result<Vec<Location>, ProblemKind> {
    let parts: Vec<_> = path.split('.').map(str::trim).collect();
    let mut assignment = Assignment {
        value,
        at: Vec::new(),
        done: Vec::new(),
    };
    assignment.put(root, shape, &parts, "")?;
    Ok(assignment.done)
}

/// The value inside `node` at `rest`; `None` if it has no such key.
pub(super) fn inside<'n>(node: &'n Node, rest: &[String]) -> Option<&'n Node> {
    rest.iter().try_fold(node, |node, part| match node.items() {
        Some(items) => items.get(part.parse::<usize>().ok()?),
        None => node.get(part),
    })
}

struct Assignment<'v> {
    value: &'v Node,
    /// The keys that lead to the current node.
    at: Location,
    /// The keys that were set.
    done: Vec<Location>,
}

impl Assignment<'_> {
    /// As [`Self::put`], one key deeper.
    fn put_in(
        &mut self,
        key: String,
        node: &mut Node,
        shape: &Shape,
        parts: &[&str],
        before: &str,
    ) -> Result<(), ProblemKind> {
        self.at.push(key);
        let result = self.put(node, shape, parts, before);
        self.at.pop();
        result
    }

    fn put(
        &mut self,
        node: &mut Node,
        shape: &Shape,
        parts: &[&str],
        before: &str,
    ) -> Result<(), ProblemKind> {
        let value = self.value;
        let Some((part, rest)) = parts.split_first() else {
            *node = value.clone();
            self.done.push(self.at.clone());
            return Ok(());
        };
        let fitting = match shape {
            Shape::Either(shapes) => shapes.iter().find(|shape| match &node.value {
                Value::Table(_) => matches!(shape, Shape::Table(_)),
                Value::List(_) => matches!(shape, Shape::List(_)),
                _ => false,
            }),
            shape => Some(shape),
        };
        let here = if before.is_empty() {
            (*part).to_owned()
        } else {
            format!("{before}.{part}")
        };
        let plain = ProblemKind::PathIntoValue {
            part: before.into(),
            value: node.show(),
        };
        match (fitting, &mut node.value) {
            (Some(Shape::Table(table)), Value::Table(entries)) => {
                let field = match field(table, entries, part) {
                    Ok(field) => field,
                    Err(known) => return Err(unknown(part, known)),
                };
                let span = value.span;
                let index = match entries.iter().position(|entry| entry.key == *part) {
                    Some(index) => index,
                    None => {
                        entries.push(Entry {
                            key: (*part).into(),
                            key_span: span,
                            node: Node {
                                span,
                                value: Value::Table(Vec::new()),
                            },
                        });
                        entries.len() - 1
                    }
                };
                let Some(entry) = entries.get_mut(index) else {
                    return Err(plain);
                };
                match field {
                    Some(field) => {
                        let node = &mut entry.node;
                        self.put_in((*part).into(), node, &field.shape, rest, &here)
                    }
                    // The tag of alternatives is a plain word.
                    None if rest.is_empty() => self.put_in(
                        (*part).into(),
                        &mut entry.node,
                        &Shape::Anything,
                        rest,
                        &here,
                    ),
                    None => Err(ProblemKind::PathIntoValue {
                        part: here,
                        value: entry.node.show(),
                    }),
                }
            }
            (Some(Shape::List(item)), Value::List(items)) => {
                let mut found = false;
                let mut by_number = items.iter().enumerate();
                let is_one = by_number.any(|(index, node)| is_called(node, index, part));
                for (index, node) in items.iter_mut().enumerate() {
                    let is_chosen = match is_one {
                        true => is_called(node, index, part),
                        false => *part == "*" || is_counted_in(node, part),
                    };
                    if is_chosen {
                        found = true;
                        self.put_in(index.to_string(), node, item, rest, &here)?;
                    }
                }
                if found {
                    return Ok(());
                }
                let labels = items
                    .iter()
                    .enumerate()
                    .map(|(index, item)| item_label(index, item))
                    .collect();
                Err(unknown(part, labels))
            }
            // The parameters depend on the controller.
            (Some(Shape::Parameters), Value::Table(entries)) => {
                if !rest.is_empty() {
                    return Err(ProblemKind::PathIntoValue {
                        part: here,
                        value: value.show(),
                    });
                }
                entries.retain(|entry| entry.key != *part);
                entries.push(Entry {
                    key: (*part).into(),
                    key_span: value.span,
                    node: value.clone(),
                });
                let mut at = self.at.clone();
                at.push((*part).into());
                self.done.push(at);
                Ok(())
            }
            _ => Err(plain),
        }
    }
}

fn unknown(part: &str, known: Vec<String>) -> ProblemKind {
    ProblemKind::UnknownPath {
        part: part.into(),
        nearest: nearest(part, known.iter().map(String::as_str)).map(Into::into),
        known,
    }
}

/// The field called `name`, or `None` for the tag of alternatives. If there is no such field, the
/// names of all fields.
///
/// Once an alternative is chosen, only its fields count.
fn field<'t>(
    table: &'t TableDoc,
    entries: &[Entry],
    name: &str,
) -> Result<Option<&'t FieldDoc>, Vec<String>> {
    let mut fields: Vec<&FieldDoc> = table.fields.iter().collect();
    let mut names = Vec::new();
    if let Some(variants) = &table.variants {
        if variants.tag == name {
            return Ok(None);
        }
        names.push(variants.tag.to_owned());
        let tag = entries
            .iter()
            .find(|entry| entry.key == variants.tag)
            .and_then(|entry| entry.node.text())
            .or(variants.default);
        for (option, table) in &variants.options {
            if tag.is_none_or(|tag| tag == *option) {
                fields.extend(table.all_fields());
            }
        }
    }
    if let Some(field) = fields.iter().find(|field| field.name == name) {
        return Ok(Some(field));
    }
    names.extend(fields.iter().map(|field| field.name.to_owned()));
    Err(names)
}

fn is_called(item: &Node, index: usize, part: &str) -> bool {
    part.parse() == Ok(index)
        || ["name", "group"]
            .iter()
            .any(|key| item.get(key).and_then(Node::text) == Some(part))
}

/// Whether results count the flows of an item in the group called `part`.
fn is_counted_in(item: &Node, part: &str) -> bool {
    let group = item.get("group").and_then(Node::text);
    group.is_some_and(|group| is_within(group, part))
}

#[cfg(test)]
mod tests {
    use super::super::document::parse;
    use super::super::schema::{Kind, Nested};
    use super::super::source::Sources;
    use super::super::tables::ScenarioFile;
    use super::*;

    fn document() -> Node {
        let text = r#"
            topology = { kind = "dumbbell", bottleneck = { rate = "1Mbps", queue = 20 } }
            [[flow]]
            group = "tcp"
            [[flow]]
            group = "udp"
            transport = "datagram"
        "#;
        parse(&mut Sources::default(), "x", text).unwrap()
    }

    fn assigned(path: &str) -> Result<String, ProblemKind> {
        let mut root = document();
        let value = Node {
            span: root.span,
            value: Value::Integer(7),
        };
        let shape = Nested::<ScenarioFile>::KIND.shape();
        assign(&mut root, &shape, path, &value).map(|_| root.show())
    }

    #[test]
    fn values_are_put_where_the_path_leads() {
        let mut root = document();
        let value = Node {
            span: root.span,
            value: Value::Integer(7),
        };
        let shape = Nested::<ScenarioFile>::KIND.shape();
        for (path, expected) in [
            ("flow.tcp.rwnd", r#"{ group = "tcp", rwnd = 7 }"#),
            ("flow.0.rwnd", r#"{ group = "tcp", rwnd = 7 }"#),
            (
                "flow.tcp.rto.tick",
                r#"{ group = "tcp", rwnd = 7, rto = { tick = 7 } }"#,
            ),
        ] {
            assign(&mut root, &shape, path, &value).unwrap();
            let first = &root.get("flow").unwrap().items().unwrap()[0];
            assert_eq!(first.show(), expected, "{path}");
        }
        assign(&mut root, &shape, "flow.*.count", &value).unwrap();
        for item in root.get("flow").unwrap().items().unwrap() {
            assert!(matches!(
                item.get("count").unwrap().value,
                Value::Integer(7)
            ));
        }
    }

    #[test]
    fn groups_that_count_together_are_set_together() {
        let text = r#"flow = [{ group = "net+a" }, { group = "net+b" }, { group = "netting" }]"#;
        let mut root = parse(&mut Sources::default(), "x", text).unwrap();
        let value = Node {
            span: root.span,
            value: Value::Integer(7),
        };
        let shape = Nested::<ScenarioFile>::KIND.shape();
        let counts = |root: &Node| -> Vec<bool> {
            let flows = root.get("flow").unwrap().items().unwrap();
            flows
                .iter()
                .map(|flow| flow.get("count").is_some())
                .collect()
        };
        assign(&mut root, &shape, "flow.net+b.count", &value).unwrap();
        assert_eq!(counts(&root), [false, true, false]);
        assign(&mut root, &shape, "flow.net.count", &value).unwrap();
        assert_eq!(counts(&root), [true, true, false]);
    }

    #[test]
    fn paths_that_lead_nowhere_say_where_they_could() {
        let Err(ProblemKind::UnknownPath { part, nearest, .. }) = assigned("flow.tcp.rwdn") else {
            panic!("the path leads nowhere")
        };
        assert_eq!((part.as_str(), nearest.as_deref()), ("rwdn", Some("rwnd")));
        let Err(ProblemKind::UnknownPath { known, .. }) = assigned("flow.sctp.rwnd") else {
            panic!("there is no such group")
        };
        assert_eq!(known, ["tcp", "udp"]);
        assert!(
            matches!(
                assigned("flow.udp.rwnd"),
                Err(ProblemKind::UnknownPath { .. })
            ),
            "datagrams have no receive buffer"
        );
        assert!(matches!(
            assigned("topology.bottleneck.queue.limit"),
            Err(ProblemKind::PathIntoValue { .. })
        ));
        assert!(matches!(
            assigned("topology.bottleneck.rate.x"),
            Err(ProblemKind::PathIntoValue { .. })
        ));
    }
}
