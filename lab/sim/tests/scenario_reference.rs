//! `docs/reference/scenario.md` agrees with the tables of scenarios.
//!
//! To update it after a change of the tables:
//!
//! ```text
//! COMITY_UPDATE=1 cargo test -p comity-sim --test it scenario_reference
//! ```

mod columns;
mod json_schema;

use comity_sim::scenario::reference;

const PAGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/reference/scenario.md"
);

#[test]
fn the_page_is_up_to_date() {
    comity_testkit::page::assert_up_to_date(PAGE, &reference::markdown());
}

/// Every reference has a definition, and every definition is an object with a description.
#[test]
fn the_json_schema_is_closed() {
    let schema = reference::json_schema();
    let definitions = schema["$defs"].as_object().unwrap();
    let text = schema.to_string();
    let mut references = 0;
    for part in text.split("\"#/$defs/").skip(1) {
        let name = part.split('"').next().unwrap();
        assert!(definitions.contains_key(name), "{name} is not defined");
        references += 1;
    }
    assert!(references > definitions.len());
    for (name, definition) in definitions {
        assert!(definition["description"].is_string(), "{name}");
    }
    assert_eq!(
        schema["required"],
        serde_json::json!(["scenario", "topology", "flow"])
    );
}
