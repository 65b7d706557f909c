//! Whether a document fits the schema, and its variables the operation, to the letter of the specification: judged by
//! apollo-compiler once for each document; the executor then need not look again.

use super::guard::{Flaw, Refused};
use apollo_compiler::ast::Value;
use apollo_compiler::executable::{Selection, SelectionSet};
use apollo_compiler::request::coerce_variable_values;
use apollo_compiler::response::serde_json_bytes;
use apollo_compiler::validation::Valid;
use apollo_compiler::{ExecutableDocument, Schema};
use serde_json::Value as Json;
use std::collections::HashSet;
use std::sync::Arc;

/// Told of one document at the most.
const FLAWS_MAX: usize = 5;
/// Names this alike or more are worth a suggestion.
const ALIKE: f64 = 0.8;

/// The schema that documents are judged by.
#[derive(Clone, Debug)]
pub(super) struct Judge {
    schema: Arc<Valid<Schema>>,
    /// Whether names that were meant are suggested: they tell the schema to whoever guesses.
    suggests: bool,
}

/// A document that fits, for judging variables.
#[derive(Debug)]
pub(super) struct Fitting {
    document: Valid<ExecutableDocument>,
}

impl Judge {
    /// By our schema.
    pub(super) fn new(suggests: bool) -> Self {
        let sdl = super::sdl();
        // A test validates what is exported; with anything else nothing could be asked for.
        let schema = Schema::parse_and_validate(sdl.clone(), "schema.graphql").unwrap_or_else(|failed| {
            tracing::error!(error = %failed.errors, "the schema is not valid");
            Valid::assume_valid(Schema::new())
        });
        Self { schema: Arc::new(schema), suggests }
    }

    /// Whether a document fits.
    pub(super) fn fit(&self, text: &str) -> Result<Fitting, Refused> {
        match ExecutableDocument::parse_and_validate(&self.schema, text, "document") {
            Ok(document) => match twice(&document) {
                Some(message) => Err(Refused::Invalid(vec![Flaw { message, locations: Vec::new() }])),
                None => Ok(Fitting { document }),
            },
            Err(failed) => {
                let flaw = |told: apollo_compiler::response::GraphQLError| Flaw {
                    message: self.suggest(told.message),
                    locations: told.locations.iter().map(|at| (at.line, at.column)).collect(),
                };
                let mut flaws: Vec<Flaw> = failed.errors.iter().map(|flawed| flaw(flawed.to_json())).collect();
                // A selection of nothing but unknown fields looks empty: that says nothing new.
                let says_new = |flaw: &Flaw| !flaw.message.ends_with("must have a subselection set");
                if flaws.iter().any(says_new) {
                    flaws.retain(says_new);
                }
                flaws.truncate(FLAWS_MAX);
                Err(Refused::Invalid(flaws))
            }
        }
    }

    /// Whether variables fit an operation.
    pub(super) fn fit_variables(
        &self,
        fitting: &Fitting,
        operation_name: Option<&str>,
        variables: Option<&Json>,
    ) -> Result<(), Refused> {
        let Ok(operation) = fitting.document.operations.get(operation_name) else { return Ok(()) };
        if operation.variables.is_empty() {
            return Ok(());
        }
        let given = match variables.cloned().map(serde_json_bytes::Value::from) {
            Some(serde_json_bytes::Value::Object(given)) => given,
            Some(_) | None => serde_json_bytes::Map::new(),
        };
        match coerce_variable_values(&self.schema, operation, &given) {
            Ok(_) => Ok(()),
            Err(error) => Err(Refused::Variables(error.message().to_string())),
        }
    }

    /// Adds what may have been meant to "type `T` does not have a field `f`".
    fn suggest(&self, message: String) -> String {
        let mut quoted = message.split('`').skip(1).step_by(2);
        let unknown_field = message.contains("does not have a field");
        let (true, true, Some(holder), Some(name)) = (self.suggests, unknown_field, quoted.next(), quoted.next())
        else {
            return message;
        };
        let known = self.schema.types.get(holder);
        let object = known.and_then(|known| known.as_object()).map(|object| object.fields.keys());
        let interface = known.and_then(|known| known.as_interface()).map(|interface| interface.fields.keys());
        let names = object.into_iter().flatten().chain(interface.into_iter().flatten());
        let likeness = |field: &str| strsim::jaro_winkler(field, name);
        let best = names.map(apollo_compiler::Name::as_str).max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
        match best.filter(|best| likeness(best) >= ALIKE) {
            Some(best) => format!("{message}; did you mean `{best}`?"),
            None => message,
        }
    }
}

/// A field of an input object that is given twice: the one rule that the library leaves out.
fn twice(document: &ExecutableDocument) -> Option<String> {
    let operations = document.operations.iter().map(|operation| &operation.selection_set);
    let fragments = document.fragments.values().map(|fragment| &fragment.selection_set);
    let mut sets: Vec<&SelectionSet> = operations.chain(fragments).collect();
    while let Some(set) = sets.pop() {
        for selection in &set.selections {
            match selection {
                Selection::Field(field) => {
                    let found = field.arguments.iter().find_map(|argument| twice_in(&argument.value));
                    if found.is_some() {
                        return found;
                    }
                    sets.push(&field.selection_set);
                }
                Selection::InlineFragment(fragment) => sets.push(&fragment.selection_set),
                Selection::FragmentSpread(_) => {}
            }
        }
    }
    None
}

fn twice_in(value: &Value) -> Option<String> {
    match value {
        Value::Object(fields) => {
            let mut names = HashSet::new();
            fields.iter().find_map(|(name, value)| {
                let again = !names.insert(name);
                again.then(|| format!("there can be only one input field named `{name}`")).or_else(|| twice_in(value))
            })
        }
        Value::List(values) => values.iter().find_map(|value| twice_in(value)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(suggests: bool, text: &str) -> String {
        match Judge::new(suggests).fit(text) {
            Err(Refused::Invalid(flaws)) => flaws[0].message.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_was_meant_is_suggested_only_if_that_is_wanted() {
        assert!(message(true, "{ venu(id: 1) { name } }").ends_with("did you mean `venue`?"));
        let nested = message(true, "{ venue(id: 1) { nam } }");
        assert!(nested.ends_with("did you mean `name`?"), "{nested}");
        assert!(!message(true, "{ xyzzy }").contains("mean"));
        assert!(!message(false, "{ venu(id: 1) { name } }").contains("mean"));
    }
}
