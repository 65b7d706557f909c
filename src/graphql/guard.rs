//! What a document may be, judged before anything is executed: bytes and nesting by a flat scan before it is parsed (the
//! parser recurses on the stack), then size and depth by one walk that visits each fragment once.

use async_graphql::parser::parse_query;
use async_graphql::parser::types::{
    DocumentOperations, ExecutableDocument, OperationDefinition, OperationType, Selection, SelectionSet,
};
use async_graphql::{Name, Positioned};
use std::collections::HashMap;

/// Bytes of a document.
pub const BYTES_MAX: usize = 64 * 1024;
/// Brackets open at once anywhere in a document.
pub const NESTING_MAX: usize = 100;
/// Fields inside each other. The introspection query of common tools has 15.
pub const DEPTH_MAX: usize = 20;
/// Fields, fragments spread out.
pub const FIELDS_MAX: usize = 5_000;

/// Why a document is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is not GraphQL.
    #[error("{0}")]
    Syntax(String),
    /// It does not fit together.
    #[error("{0}")]
    Validation(String),
    /// It asks for too much.
    #[error("{0}")]
    TooComplex(String),
}

/// A document with the one operation that is to run.
#[derive(Clone, Debug)]
pub struct Accepted {
    /// Without the operations that were not selected.
    pub document: ExecutableDocument,
    /// What kind of operation it is.
    pub kind: OperationType,
}

/// Judges a document and selects its operation.
pub fn accept(text: &str, operation_name: Option<&str>) -> Result<Accepted, Refused> {
    if text.len() > BYTES_MAX {
        return Err(Refused::TooComplex(format!("a document has at most {BYTES_MAX} bytes")));
    }
    scan(text)?;
    let mut document = parse_query(text).map_err(|error| Refused::Syntax(error.to_string()))?;
    let operation = select(&document.operations, operation_name)?;
    let kind = operation.node.ty;
    let mut walk = Walk { document: &document, fragments: HashMap::new() };
    let size = walk.set(&operation.node.selection_set.node)?;
    if size.depth > DEPTH_MAX {
        return Err(Refused::TooComplex(format!("fields may be nested {DEPTH_MAX} deep, these are {}", size.depth)));
    }
    if kind == OperationType::Subscription && walk.root_fields(&operation.node.selection_set.node) != 1 {
        return Err(Refused::Validation("a subscription has exactly one root field".to_owned()));
    }
    document.operations = DocumentOperations::Single(operation);
    Ok(Accepted { document, kind })
}

/// Counts open brackets outside of strings and comments.
fn scan(text: &str) -> Result<(), Refused> {
    let mut open = 0_usize;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let mut skip = c.len_utf8();
        match c {
            '{' | '[' | '(' => {
                open += 1;
                if open > NESTING_MAX {
                    return Err(Refused::TooComplex(format!("brackets may be nested {NESTING_MAX} deep")));
                }
            }
            '}' | ']' | ')' => open = open.saturating_sub(1),
            '#' => skip = rest.find(['\n', '\r']).unwrap_or(rest.len()),
            '"' => skip = string_end(rest),
            _ => {}
        }
        rest = rest.get(skip..).unwrap_or_default();
    }
    Ok(())
}

/// The length of the string that a text begins with; of the whole text if it does not end.
fn string_end(text: &str) -> usize {
    if let Some(block) = text.strip_prefix("\"\"\"") {
        let mut from = 0;
        while let Some(found) = block.get(from..).and_then(|rest| rest.find("\"\"\"")) {
            let at = from + found;
            if !block.get(..at).is_some_and(|before| before.ends_with('\\')) {
                return at + 6;
            }
            from = at + 3;
        }
        return text.len();
    }
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' | '\n' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn select(operations: &DocumentOperations, name: Option<&str>) -> Result<Positioned<OperationDefinition>, Refused> {
    let unknown = |name: &str| Refused::Validation(format!("there is no operation named \"{name}\""));
    match (operations, name) {
        (DocumentOperations::Single(operation), None) => Ok(operation.clone()),
        (DocumentOperations::Single(_), Some(name)) => Err(unknown(name)),
        (DocumentOperations::Multiple(operations), Some(name)) => {
            operations.get(name).cloned().ok_or_else(|| unknown(name))
        }
        (DocumentOperations::Multiple(operations), None) => {
            let mut all = operations.values();
            match (all.next(), all.next()) {
                (Some(only), None) => Ok(only.clone()),
                _ => {
                    Err(Refused::Validation("operationName is needed: the document has several operations".to_owned()))
                }
            }
        }
    }
}

#[derive(Clone, Copy, Default)]
struct Size {
    fields: usize,
    depth: usize,
}

struct Walk<'a> {
    document: &'a ExecutableDocument,
    /// `None` while a fragment is being visited: meeting it again is a circle.
    fragments: HashMap<&'a Name, Option<Size>>,
}

impl<'a> Walk<'a> {
    fn set(&mut self, set: &'a SelectionSet) -> Result<Size, Refused> {
        let mut sum = Size::default();
        for item in &set.items {
            let size = match &item.node {
                Selection::Field(field) => {
                    let inner = self.set(&field.node.selection_set.node)?;
                    Size { fields: inner.fields + 1, depth: inner.depth + 1 }
                }
                Selection::InlineFragment(fragment) => self.set(&fragment.node.selection_set.node)?,
                Selection::FragmentSpread(spread) => self.fragment(&spread.node.fragment_name.node)?,
            };
            sum = Size { fields: sum.fields.saturating_add(size.fields), depth: sum.depth.max(size.depth) };
            if sum.fields > FIELDS_MAX {
                return Err(Refused::TooComplex(format!("a document may ask for {FIELDS_MAX} fields")));
            }
        }
        Ok(sum)
    }

    fn fragment(&mut self, name: &'a Name) -> Result<Size, Refused> {
        match self.fragments.get(name) {
            Some(Some(size)) => return Ok(*size),
            Some(None) => return Err(Refused::Validation(format!("the fragment \"{name}\" spreads itself"))),
            None => {}
        }
        let Some(fragment) = self.document.fragments.get(name) else {
            return Err(Refused::Validation(format!("there is no fragment named \"{name}\"")));
        };
        self.fragments.insert(name, None);
        let size = self.set(&fragment.node.selection_set.node)?;
        self.fragments.insert(name, Some(size));
        Ok(size)
    }

    fn root_fields(&self, set: &SelectionSet) -> usize {
        let of = |item: &Positioned<Selection>| match &item.node {
            Selection::Field(_) => 1,
            Selection::InlineFragment(fragment) => self.root_fields(&fragment.node.selection_set.node),
            Selection::FragmentSpread(spread) => self
                .document
                .fragments
                .get(&spread.node.fragment_name.node)
                .map_or(0, |fragment| self.root_fields(&fragment.node.selection_set.node)),
        };
        set.items.iter().map(of).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> Refused {
        accept(text, None).unwrap_err()
    }

    #[test]
    fn ordinary_documents_pass_and_only_the_selected_operation_is_left() {
        assert_eq!(accept("{ a { b } }", None).unwrap().kind, OperationType::Query);
        let two = accept("query A { a } mutation B { b }", Some("B")).unwrap();
        assert_eq!(two.kind, OperationType::Mutation);
        assert!(matches!(two.document.operations, DocumentOperations::Single(_)));
        assert!(matches!(refused("query A { a } query B { b }"), Refused::Validation(_)));
        assert!(matches!(accept("{ a }", Some("X")), Err(Refused::Validation(_))));
        assert!(matches!(refused("{ a "), Refused::Syntax(_)));
    }

    #[test]
    fn doubling_fragments_circles_and_deep_brackets_cost_nothing() {
        let doubling = |n: usize| {
            let fragments: String =
                (0..n).map(|i| format!("fragment f{i} on T {{ a: x ...f{} ...f{} }} ", i + 1, i + 1)).collect();
            format!("{{ ...f0 }} {fragments} fragment f{n} on T {{ x }}")
        };
        assert!(matches!(refused(&doubling(31)), Refused::TooComplex(_)));
        assert!(matches!(
            refused("{ ...a } fragment a on T { ...b } fragment b on T { ...a }"),
            Refused::Validation(_)
        ));
        assert!(matches!(refused(&format!("{{ a(x: {}) }}", "[".repeat(10_000))), Refused::TooComplex(_)));
        assert!(matches!(refused(&"{ a ".repeat(10_000)), Refused::TooComplex(_)));
        assert!(matches!(refused(&format!("{{ {} }}", "a ".repeat(40_000))), Refused::TooComplex(_)));
        let deep = format!("{}x{}", "{ a ".repeat(25), "}".repeat(25));
        assert!(matches!(refused(&deep), Refused::TooComplex(_)));
    }

    #[test]
    fn brackets_in_strings_and_comments_do_not_count() {
        let many = "[".repeat(500);
        assert!(accept(&format!("{{ a(x: \"{many}\") }} # {many}"), None).is_ok());
        assert!(accept(&format!("{{ a(x: \"\"\"{many} \\\"\"\" {many}\"\"\") }}"), None).is_ok());
        assert!(accept(&format!("{{ a(x: \"\\\"{many}\") }}"), None).is_ok());
    }

    #[test]
    fn a_subscription_has_one_root_field() {
        assert!(accept("subscription { a }", None).is_ok());
        assert!(matches!(refused("subscription { a b }"), Refused::Validation(_)));
        assert!(matches!(refused("subscription { ...f } fragment f on S { a b }"), Refused::Validation(_)));
    }
}
