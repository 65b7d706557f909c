//! The schema as committed, against the fixed contract and against itself.

use async_graphql::parser::parse_schema;
use async_graphql::parser::types::{ServiceDocument, TypeKind, TypeSystemDefinition};
use std::collections::BTreeMap;

const CORE: &str = include_str!("../schema/core.graphql");
const EXPORTED: &str = include_str!("../schema/schema.graphql");

#[test]
fn the_committed_schema_is_the_servers() {
    assert!(parterre::graphql::sdl() == EXPORTED, "stale: cargo run -- schema > schema/schema.graphql");
}

#[test]
fn the_schema_and_the_playgrounds_operations_are_valid() {
    let schema = apollo_compiler::Schema::parse_and_validate(EXPORTED, "schema.graphql")
        .unwrap_or_else(|error| panic!("{error}"));
    for entry in std::fs::read_dir("playground/operations").unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        apollo_compiler::ExecutableDocument::parse_and_validate(&schema, &text, &path)
            .unwrap_or_else(|error| panic!("{error}"));
    }
}

/// Every member of every type: `field(argument: Type = default): Type`, an enum's values, a union's members.
fn members(document: &ServiceDocument) -> BTreeMap<String, Vec<String>> {
    let mut types = BTreeMap::new();
    for definition in &document.definitions {
        let TypeSystemDefinition::Type(definition) = definition else { continue };
        let name = definition.node.name.node.to_string();
        let members: Vec<String> = match &definition.node.kind {
            TypeKind::Scalar => Vec::new(),
            TypeKind::Object(object) => {
                let fields = object.fields.iter().map(|field| field_text(&field.node));
                fields.chain(object.implements.iter().map(|name| format!("implements {}", name.node))).collect()
            }
            TypeKind::Interface(interface) => interface.fields.iter().map(|field| field_text(&field.node)).collect(),
            TypeKind::Union(union) => union.members.iter().map(|name| name.node.to_string()).collect(),
            TypeKind::Enum(values) => values.values.iter().map(|value| value.node.value.node.to_string()).collect(),
            TypeKind::InputObject(input) => input.fields.iter().map(|field| value_text(&field.node)).collect(),
        };
        types.insert(name, members);
    }
    types
}

fn field_text(field: &async_graphql::parser::types::FieldDefinition) -> String {
    let mut arguments: Vec<String> = field.arguments.iter().map(|argument| value_text(&argument.node)).collect();
    arguments.sort();
    format!("{}({}): {}", field.name.node, arguments.join(", "), field.ty.node)
}

fn value_text(value: &async_graphql::parser::types::InputValueDefinition) -> String {
    let default = value.default_value.as_ref().map(|value| format!(" = {}", value.node)).unwrap_or_default();
    format!("{}: {}{default}", value.name.node, value.ty.node)
}

#[test]
fn every_name_argument_and_nullability_of_the_contract_is_kept() {
    let (core, exported) = (members(&parse_schema(CORE).unwrap()), members(&parse_schema(EXPORTED).unwrap()));
    let mut missing = Vec::new();
    for (name, members) in &core {
        let Some(found) = exported.get(name) else {
            missing.push(format!("type {name}"));
            continue;
        };
        missing
            .extend(members.iter().filter(|member| !found.contains(member)).map(|member| format!("{name}.{member}")));
    }
    assert!(missing.is_empty(), "missing or different:\n{}", missing.join("\n"));
}

#[test]
fn every_public_field_is_described() {
    let document = parse_schema(EXPORTED).unwrap();
    let mut silent = Vec::new();
    for definition in &document.definitions {
        let TypeSystemDefinition::Type(definition) = definition else { continue };
        let name = &definition.node.name.node;
        if definition.node.description.is_none() {
            silent.push(name.to_string());
        }
        if let TypeKind::Object(object) = &definition.node.kind {
            let fields = object.fields.iter().filter(|field| field.node.description.is_none());
            silent.extend(fields.map(|field| format!("{name}.{}", field.node.name.node)));
        }
    }
    assert!(silent.is_empty(), "without a description: {silent:?}");
}

/// The text between two marks of the README.
fn marked<'a>(text: &'a str, mark: &str) -> &'a str {
    let (_, rest) = text.split_once(&format!("<!-- {mark} -->\n")).unwrap();
    rest.split_once(&format!("<!-- /{mark} -->")).unwrap().0
}

#[test]
fn the_readmes_table_of_error_codes_is_the_codes_own() {
    let readme = std::fs::read_to_string("README.md").unwrap();
    let table = parterre::graphql::error_table();
    assert!(marked(&readme, "errors") == table, "stale: paste `parterre schema --errors`:\n{table}");
    assert_eq!(table.lines().count(), 2 + 17 + 11, "one line a code:\n{table}");
    assert!(
        table.lines().skip(2).all(|line| line.split('|').nth(3).is_some_and(|meaning| meaning.len() > 10)),
        "{table}"
    );
}

/// Dashboards and alerts that ask for what nobody tells stay empty for ever.
#[test]
fn every_metric_of_the_dashboard_and_the_alerts_is_recorded() {
    fn sources(folder: &std::path::Path, text: &mut String) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, text);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                text.push_str(&std::fs::read_to_string(path).unwrap());
            }
        }
    }
    let mut source = String::new();
    sources(std::path::Path::new("src"), &mut source);
    let (mut asked, mut unknown) = (0, Vec::new());
    for file in ["docs/operation/dashboard.json", "docs/operation/alerts.yaml"] {
        let text = std::fs::read_to_string(file).unwrap();
        for word in
            text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| word.starts_with("parterre_"))
        {
            let name = ["_bucket", "_sum", "_count"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word);
            asked += 1;
            if !source.contains(&format!("!(\"{name}\"")) {
                unknown.push(name.to_owned());
            }
        }
    }
    assert!(asked > 50, "{asked}");
    assert!(unknown.is_empty(), "{unknown:?}");
}
