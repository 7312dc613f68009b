//! The applications of the five papers, as keys of a flow.

use super::document::{Node, default_value};
pub use super::papers::{APPLICATIONS, Application};
use super::reference::{Key, keys_with};
use super::source::SourceSpan;

/// A parameter of an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The key of a flow that it belongs to.
    pub of: &'static str,
    /// The key, as in the reference.
    pub key: Key,
    /// The value of the application, as TOML; `None` if the application does not set it.
    pub value: Option<String>,
}

impl Application {
    /// Every parameter of its tables, including those that it does not set.
    pub fn parameters(&self) -> Vec<Parameter> {
        let tables = self.keys.iter().filter_map(|&(of, text)| {
            let node = default_value(text, SourceSpan::new(0, 0..0))?;
            Some((of, node))
        });
        tables
            .flat_map(|(of, node)| {
                keys_with(of, &node).into_iter().map(move |key| {
                    let value = node.get(&key.name).map(Node::show);
                    Parameter { of, key, value }
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Folder, Reading, Scenario};

    /// The parser of scenarios accepts each as written, and its flow sends.
    #[test]
    fn each_is_a_flow_of_a_scenario() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/tltcp");
        for application in APPLICATIONS {
            let text = format!(
                "scenario = {{ name = \"one\", duration = \"2s\" }}\n\
                 topology = {{ kind = \"dumbbell\", bottleneck = {{ rate = \"10Mbps\", delay = \"10ms\" }} }}\n\
                 [[flow]]\ngroup = \"one\"\n{}",
                application.toml()
            );
            let read = Scenario::parse(
                "one.toml",
                &text,
                Folder(folder.into()),
                &Reading::default(),
            );
            let scenario =
                read.unwrap_or_else(|problems| panic!("{}: {problems}", application.name));
            assert_eq!(scenario.runs().len(), 1, "{}", application.name);
        }
    }

    #[test]
    fn parameters_are_those_of_the_tables_with_the_values_of_the_paper() {
        let of = |name: &str| {
            let application = APPLICATIONS
                .iter()
                .find(|known| known.name == name)
                .unwrap();
            application.parameters()
        };
        let value = |name: &str, key: &str| {
            let parameters = of(name);
            let found = parameters.into_iter().find(|known| known.key.name == key);
            found.unwrap().value
        };
        assert_eq!(value("vreal", "bytes").as_deref(), Some("\"5kB\""));
        assert_eq!(value("vreal", "interval").as_deref(), Some("\"40ms\""));
        assert_eq!(value("vreal", "delay"), None);
        assert_eq!(value("token-bucket", "depth").as_deref(), Some("\"20kB\""));
        assert_eq!(value("mpeg1", "feedback").as_deref(), Some("\"2s\""));
        assert_eq!(value("mpeg1", "section"), None);
        // Keys of other choices are not listed.
        let names: Vec<String> = of("udp-jitter")
            .into_iter()
            .map(|known| known.key.name)
            .collect();
        assert_eq!(names, ["rate", "interval", "gap", "jitter"]);
        // Every written key is one of a table, or a plain one.
        for application in APPLICATIONS {
            let parameters = application.parameters();
            for (of, text) in application.keys {
                let node = default_value(text, SourceSpan::new(0, 0..0)).unwrap();
                for entry in node.entries().unwrap_or_default() {
                    let is_known = parameters
                        .iter()
                        .any(|known| known.of == *of && known.key.name == entry.key);
                    assert!(
                        is_known || entry.key == "kind",
                        "{}: {}",
                        application.name,
                        entry.key
                    );
                }
            }
        }
    }
}
