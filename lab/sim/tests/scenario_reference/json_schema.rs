//! The JSON Schema of scenarios, checked by an independent validator.

use std::fs;
use std::path::Path;

use comity_sim::scenario::{NoFiles, Reading, Scenario, reference};
use toml::de::{DeTable, DeValue};

/// The value as JSON; dates do not occur in scenarios.
fn json(value: &DeValue<'_>) -> serde_json::Value {
    match value {
        DeValue::String(text) => text.as_ref().into(),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .unwrap()
            .into(),
        DeValue::Float(number) => number.as_str().parse::<f64>().unwrap().into(),
        DeValue::Boolean(flag) => (*flag).into(),
        DeValue::Datetime(date) => date.to_string().into(),
        DeValue::Array(items) => items.iter().map(|item| json(item.get_ref())).collect(),
        DeValue::Table(table) => json_table(table),
    }
}

fn json_table(table: &DeTable<'_>) -> serde_json::Value {
    table
        .iter()
        .map(|(key, value)| (key.get_ref().to_string(), json(value.get_ref())))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn parse(text: &str) -> serde_json::Value {
    json_table(DeTable::parse(text).unwrap().get_ref())
}

#[test]
fn the_json_schema_accepts_every_experiment() {
    let schema = reference::json_schema();
    jsonschema::draft202012::meta::validate(&schema).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments"));
    let mut scenarios = 0;
    for file in comity_testkit::tracked::files(folder, &["toml"]) {
        let document = parse(&fs::read_to_string(&file).unwrap());
        // A file without the table is about scenarios, such as the causes of differences.
        if document.get("scenario").is_none() {
            continue;
        }
        scenarios += 1;
        let problems: Vec<String> = validator
            .iter_errors(&document)
            .map(|problem| format!("{}: {problem}", problem.instance_path()))
            .collect();
        assert!(problems.is_empty(), "{}: {problems:#?}", file.display());
    }
    assert!(scenarios > 50, "{scenarios} scenarios found");
}

#[test]
fn the_json_schema_and_the_reader_refuse_the_same_scenarios() {
    let is_read =
        |text: &str| Scenario::parse("x.toml", text, NoFiles, &Reading::default()).is_ok();
    let validator = jsonschema::draft202012::new(&reference::json_schema()).unwrap();
    let right = "scenario = { name = \"x\", duration = \"10s\" }\n\
                 topology = { kind = \"dumbbell\", bottleneck = { rate = \"1Mbps\", delay = \"20ms\" } }\n\
                 flow = [{ group = \"tcp\", rwnd = 10 }]\n";
    assert!(validator.is_valid(&parse(right)) && is_read(right));
    for (replaced, replacement) in [
        ("duration", "durration"),
        ("rwnd = 10", "rwnd = \"ten\""),
        ("\"1Mbps\"", "\"1 furlong\""),
        ("\"dumbbell\"", "\"dumbell\""),
        ("group = \"tcp\", ", ""),
    ] {
        let wrong = right.replace(replaced, replacement);
        assert_ne!(wrong, right);
        assert!(!validator.is_valid(&parse(&wrong)), "{wrong}");
        assert!(!is_read(&wrong), "{wrong}");
    }
}
