//! What a document may be, judged before anything is executed: bytes, nesting and directives by a flat scan before it is
//! parsed (the parser recurses on the stack), then size, depth and aliases by one walk that visits each fragment once.
//! What passed is kept; its cost is judged for each request, with its variables, by the same walk.

use super::validity::{Fitting, Judge};
use async_graphql::parser::parse_query;
use async_graphql::parser::types::{
    DocumentOperations, ExecutableDocument, Field, OperationDefinition, OperationType, Selection, SelectionSet,
    VariableDefinition,
};
use async_graphql::{Name, Positioned};
use async_graphql_value::Value;
use parterre_schema::limits;
use serde_json::Value as Json;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Bytes of a document.
pub const BYTES_MAX: usize = 64 * 1024;
/// Brackets open at once anywhere in a document.
pub const NESTING_MAX: usize = 100;
/// Fields inside each other. The introspection query of common tools has 15.
pub const DEPTH_MAX: usize = 20;
/// Fields, fragments spread out.
pub const FIELDS_MAX: usize = 5_000;

/// Directives anywhere in a document.
pub const DIRECTIVES_MAX: usize = 100;
/// Fields under another name, or asked for again in one selection: both are answered once more.
pub const ALIASES_MAX: usize = 200;
/// Arguments of one field.
pub const ARGUMENTS_MAX: usize = 30;
/// Fields of a query itself, however they are put together.
pub const ROOT_FIELDS_MAX: usize = 100;
/// Operations in one document, and fragments.
pub const OPERATIONS_MAX: usize = 20;
/// The same of fragments.
pub const FRAGMENTS_MAX: usize = 200;
/// Mutations in one document.
pub const ROOT_MUTATIONS_MAX: usize = 5;
/// Selections and fragments inside each other.
const WALK_DEPTH_MAX: usize = 150;
/// What a document may cost: a field costs 1, a page as often what it holds as it is long.
pub const COST_MAX: u64 = 50_000;
/// Fields that are pages. A test compares them with the schema.
const PAGES: [&str; 5] = ["bookings", "events", "holds", "searchEvents", "venues"];
/// Fields that answer with a seat map.
const MAPS: [&str; 2] = ["seatMap", "seatMapChanged"];
/// The list of a map that is not paged: it costs as many seats as it has.
const SEATS: &str = "seats";
/// The field that looks up objects of any kind by their `ids`, one by one, and what each look costs. (A page's nodes have
/// the same name.)
const NODES: &str = "nodes";
const LOOK_UP: u64 = 10;
/// What is counted and summed up over all orders.
const REPORT: &str = "sales";
/// How long a cache may keep what events, venues and performers say of themselves.
const COPY_FRESH_SECONDS: u32 = 60;
/// Fields that may be kept for a shorter time: what is on sale, and what of it is left.
const FRESH_SECONDS: [(&str, u32); 7] = [
    ("searchEvents", 5),
    ("events", 5),
    ("saleStatus", 5),
    ("waitingRoomEnabled", 5),
    ("available", 1),
    ("availableCount", 1),
    ("seatMap", 1),
];
/// How long a page is at the most, and when nothing is said.
const PAGE: (u64, u64) = (100, 20);

/// Why a document is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is not GraphQL.
    #[error("{0}")]
    Syntax(String),
    /// It does not fit together.
    #[error("{0}")]
    Validation(String),
    /// It does not fit the schema.
    #[error("the document does not fit the schema")]
    Invalid(Vec<Flaw>),
    /// Its variables do not fit.
    #[error("{0}")]
    Variables(String),
    /// It asks for too much.
    #[error("{0}")]
    TooComplex(String),
}

/// What is wrong with a document, and where: line and column, from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// For people.
    pub message: String,
    /// In the document.
    pub locations: Vec<(usize, usize)>,
}

/// A document with the one operation that is to run.
#[derive(Clone, Debug)]
pub struct Accepted {
    /// Without the operations that were not selected.
    pub document: Arc<ExecutableDocument>,
    /// What kind of operation it is.
    pub kind: OperationType,
    /// What it costs with these variables, of `COST_MAX`, but for lists of seats.
    pub cost: u64,
    /// The maps whose seats it lists.
    pub maps: Vec<SeatsListed>,
    /// Whether it reads reports.
    pub is_report: bool,
    /// How long a cache may keep its answer, in seconds, if it is nobody's own.
    pub fresh_seconds: u32,
}

/// A map whose seats are listed one by one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeatsListed {
    /// The event's id, as it was given.
    pub event: String,
    /// Only these sections.
    pub sections: Option<Vec<String>>,
    /// What each seat costs.
    pub each: u64,
}

/// A document that passed, with the one operation that is to run.
#[derive(Debug)]
struct Parsed {
    document: Arc<ExecutableDocument>,
    kind: OperationType,
    /// Whether it asks for the schema.
    introspects: bool,
}

/// Documents that passed, so that those who ask the same again are answered sooner.
#[derive(Clone, Debug)]
pub struct Documents {
    /// Whether the schema may be asked for by a document.
    introspection: bool,
    judge: Judge,
    kept: moka::sync::Cache<Asked, Arc<Kept>>,
}

/// A document and the operation of it that is to run.
type Asked = (String, Option<String>);

#[derive(Debug)]
struct Kept {
    parsed: Parsed,
    fitting: Fitting,
}

/// Bytes of documents kept. Parsed they take about ten times as much as their text, and some more.
const KEPT_BYTES: u64 = 32 * 1024 * 1024;
/// Longer documents are not kept.
const KEPT_MAX: usize = 16 * 1024;

impl Documents {
    /// None yet. Where introspection is answered, names that were meant are suggested too.
    #[must_use]
    pub fn new(introspection: bool) -> Self {
        let weight = |key: &Asked, _: &Arc<Kept>| u32::try_from(key.0.len() * 10 + 4_096).unwrap_or(u32::MAX);
        let kept = moka::sync::Cache::builder().max_capacity(KEPT_BYTES).weigher(weight).build();
        Self { introspection, judge: Judge::new(introspection), kept }
    }

    /// Judges a document with its variables and selects its operation.
    pub fn accept(
        &self,
        text: &str,
        operation_name: Option<&str>,
        variables: Option<&Json>,
    ) -> Result<Accepted, Refused> {
        let key = (text.to_owned(), operation_name.map(str::to_owned));
        let kept = if let Some(kept) = self.kept.get(&key) {
            kept
        } else {
            let kept = Arc::new(Kept { parsed: parse(text, operation_name)?, fitting: self.judge.fit(text)? });
            if text.len() <= KEPT_MAX {
                self.kept.insert(key, Arc::clone(&kept));
            }
            kept
        };
        if kept.parsed.introspects && !self.introspection {
            return Err(Refused::Validation("introspection is off here: the schema is at /schema.graphql".to_owned()));
        }
        self.judge.fit_variables(&kept.fitting, operation_name, variables)?;
        kept.parsed.judge(variables)
    }
}

impl Parsed {
    fn judge(&self, variables: Option<&Json>) -> Result<Accepted, Refused> {
        let mut operations = self.document.operations.iter();
        let Some((_, operation)) = operations.next() else {
            return Err(Refused::Validation("a document needs an operation".to_owned()));
        };
        let mut walk = Walk::of(&self.document, &operation.node, variables);
        let cost = walk.set(&operation.node.selection_set.node)?.cost;
        check_cost(cost)?;
        let Walk { maps, is_report, fresh_seconds, .. } = walk;
        let document = Arc::clone(&self.document);
        Ok(Accepted { document, kind: self.kind, cost, maps, is_report, fresh_seconds })
    }
}

/// Whether a document may cost that much.
pub fn check_cost(cost: u64) -> Result<(), Refused> {
    if cost <= COST_MAX {
        return Ok(());
    }
    let message =
        format!("a document may cost {COST_MAX}, this one costs {cost}: ask for shorter pages, or `statuses` of seats");
    Err(Refused::TooComplex(message))
}

/// Judges what does not depend on variables, and selects the operation.
fn parse(text: &str, operation_name: Option<&str>) -> Result<Parsed, Refused> {
    if text.len() > BYTES_MAX {
        return Err(Refused::TooComplex(format!("a document has at most {BYTES_MAX} bytes")));
    }
    scan(text)?;
    let mut document = parse_query(text).map_err(|error| Refused::Syntax(error.to_string()))?;
    if document.operations.iter().count() > OPERATIONS_MAX || document.fragments.len() > FRAGMENTS_MAX {
        let message = format!("a document may have {OPERATIONS_MAX} operations and {FRAGMENTS_MAX} fragments");
        return Err(Refused::TooComplex(message));
    }
    let mut operation = select(&document.operations, operation_name)?;
    let kind = operation.node.ty;
    let mut walk = Walk::of(&document, &operation.node, None);
    let size = walk.set(&operation.node.selection_set.node)?;
    let needed: HashSet<Name> = walk.fragments.keys().map(|name| (*name).clone()).collect();
    if let Some(unused) = walk.unused()? {
        return Err(Refused::Validation(format!("the fragment \"{unused}\" is never used")));
    }
    if size.aliases > ALIASES_MAX {
        return Err(Refused::TooComplex(format!(
            "a document may have {ALIASES_MAX} aliases, these are {}",
            size.aliases
        )));
    }
    if size.roots > ROOT_FIELDS_MAX {
        return Err(Refused::TooComplex(format!("an operation may have {ROOT_FIELDS_MAX} fields of its own")));
    }
    if kind == OperationType::Mutation && size.roots > ROOT_MUTATIONS_MAX {
        return Err(Refused::TooComplex(format!("a document may have {ROOT_MUTATIONS_MAX} mutations")));
    }
    if size.depth > DEPTH_MAX {
        return Err(Refused::TooComplex(format!("fields may be nested {DEPTH_MAX} deep, these are {}", size.depth)));
    }
    if kind == OperationType::Subscription && size.roots != 1 {
        return Err(Refused::Validation("a subscription has exactly one root field".to_owned()));
    }
    let introspects = walk.introspects;
    if kind == OperationType::Subscription {
        spread_root(&document, &mut operation.node.selection_set.node);
    }
    document.operations = DocumentOperations::Single(operation);
    // What only the other operations use would look unused.
    document.fragments.retain(|name, _| needed.contains(name));
    Ok(Parsed { document: Arc::new(document), kind, introspects })
}

/// Puts a subscription's one root field where its executor looks for it: not inside of fragments, which have been found to
/// end somewhere.
fn spread_root(document: &ExecutableDocument, root: &mut SelectionSet) {
    while let Some(outer) = root.items.first() {
        let inner = match &outer.node {
            Selection::Field(_) => return,
            Selection::InlineFragment(fragment) => fragment.node.selection_set.node.clone(),
            Selection::FragmentSpread(spread) => match document.fragments.get(&spread.node.fragment_name.node) {
                Some(fragment) => fragment.node.selection_set.node.clone(),
                None => return,
            },
        };
        *root = inner;
    }
}

/// Counts open brackets and directives outside of strings and comments.
fn scan(text: &str) -> Result<(), Refused> {
    let (mut open, mut directives) = (0_usize, 0_usize);
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
            '@' => {
                directives += 1;
                if directives > DIRECTIVES_MAX {
                    return Err(Refused::TooComplex(format!("a document may have {DIRECTIVES_MAX} directives")));
                }
            }
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

fn too_deep() -> Refused {
    Refused::TooComplex(format!("fields and fragments may be nested {WALK_DEPTH_MAX} deep"))
}

#[derive(Clone, Copy, Default)]
struct Size {
    fields: usize,
    depth: usize,
    aliases: usize,
    cost: u64,
    /// What each seat costs of a map that is listed in here.
    each_seat: u64,
    /// Fields of this selection itself, fragments spread out.
    roots: usize,
    /// Selections and fragments inside each other.
    height: usize,
}

/// The request's variables, and what they are when nothing is said.
#[derive(Clone, Copy)]
struct Variables<'a> {
    given: Option<&'a Json>,
    declared: &'a [Positioned<VariableDefinition>],
}

impl Variables<'_> {
    /// The value of an argument.
    fn value(self, value: &Value) -> Option<Json> {
        match value {
            Value::Variable(name) => {
                if let Some(given) = self.given.and_then(|given| given.get(name.as_str())) {
                    return Some(given.clone());
                }
                let declared = self.declared.iter().find(|declared| declared.node.name.node == *name)?;
                declared.node.default_value.as_ref()?.node.clone().into_json().ok()
            }
            Value::List(items) => items.iter().map(|item| self.value(item)).collect::<Option<Vec<_>>>().map(Json::from),
            value => value.clone().into_const()?.into_json().ok(),
        }
    }

    fn text(self, value: &Value) -> Option<String> {
        self.value(value)?.as_str().map(str::to_owned)
    }

    /// A list of texts; one alone is a list of one.
    fn texts(self, value: &Value) -> Option<Vec<String>> {
        match self.value(value)? {
            Json::String(one) => Some(vec![one]),
            Json::Array(many) => many.into_iter().map(|one| one.as_str().map(str::to_owned)).collect(),
            _ => None,
        }
    }

    /// The whole number of an argument.
    fn number(self, value: &Value) -> Option<u64> {
        self.value(value)?.as_u64()
    }
}

struct Walk<'a> {
    document: &'a ExecutableDocument,
    /// `None` while a fragment is being visited: meeting it again is a circle.
    fragments: HashMap<&'a Name, Option<(Size, Vec<SeatsListed>)>>,
    variables: Variables<'a>,
    /// How many selections we are inside of.
    inside: usize,
    maps: Vec<SeatsListed>,
    is_report: bool,
    introspects: bool,
    fresh_seconds: u32,
}

impl<'a> Walk<'a> {
    fn of(document: &'a ExecutableDocument, operation: &'a OperationDefinition, given: Option<&'a Json>) -> Self {
        let variables = Variables { given, declared: &operation.variable_definitions };
        Self {
            document,
            fragments: HashMap::new(),
            variables,
            inside: 0,
            maps: Vec::new(),
            is_report: false,
            introspects: false,
            fresh_seconds: COPY_FRESH_SECONDS,
        }
    }

    fn set(&mut self, set: &'a SelectionSet) -> Result<Size, Refused> {
        self.inside += 1;
        if self.inside > WALK_DEPTH_MAX {
            return Err(too_deep());
        }
        let mut sum = Size::default();
        let mut keys = HashSet::new();
        for item in &set.items {
            let size = match &item.node {
                Selection::Field(field) => {
                    let size = self.field(&field.node)?;
                    let again = !keys.insert(&field.node.response_key().node) && field.node.alias.is_none();
                    Size { aliases: size.aliases + usize::from(again), ..size }
                }
                Selection::InlineFragment(fragment) => self.set(&fragment.node.selection_set.node)?,
                Selection::FragmentSpread(spread) => self.fragment(&spread.node.fragment_name.node)?,
            };
            sum = Size {
                fields: sum.fields.saturating_add(size.fields),
                depth: sum.depth.max(size.depth),
                aliases: sum.aliases.saturating_add(size.aliases),
                cost: sum.cost.saturating_add(size.cost),
                each_seat: sum.each_seat.saturating_add(size.each_seat),
                roots: sum.roots.saturating_add(size.roots),
                height: sum.height.max(size.height),
            };
            if self.inside + sum.height > WALK_DEPTH_MAX {
                return Err(too_deep());
            }
            if sum.fields > FIELDS_MAX {
                return Err(Refused::TooComplex(format!("a document may ask for {FIELDS_MAX} fields")));
            }
        }
        self.inside -= 1;
        Ok(Size { height: sum.height + 1, ..sum })
    }

    fn field(&mut self, field: &'a Field) -> Result<Size, Refused> {
        if field.arguments.len() > ARGUMENTS_MAX {
            return Err(Refused::TooComplex(format!("a field may have {ARGUMENTS_MAX} arguments")));
        }
        let inner = self.set(&field.selection_set.node)?;
        let (length, each) = match field.name.node.as_str() {
            name if PAGES.contains(&name) => {
                let asked = field.get_argument("first").and_then(|value| self.variables.number(&value.node));
                (asked.unwrap_or(PAGE.1).min(PAGE.0), 0)
            }
            NODES if field.get_argument("ids").is_some() => {
                let ids = field.get_argument("ids").and_then(|value| self.variables.texts(&value.node));
                (ids.map_or(PAGE.0, |ids| u64::try_from(ids.len()).unwrap_or(u64::MAX)), LOOK_UP)
            }
            _ => (1, 0),
        };
        let name = field.name.node.as_str();
        self.is_report |= name == REPORT;
        if let Some((_, seconds)) = FRESH_SECONDS.iter().find(|(live, _)| *live == name) {
            self.fresh_seconds = self.fresh_seconds.min(*seconds);
        }
        self.introspects |= matches!(name, "__schema" | "__type");
        let (inner_cost, each_seat) = match name {
            SEATS => (0, inner.cost),
            _ if MAPS.contains(&name) => {
                self.list_seats(field, inner.each_seat)?;
                (inner.cost, 0)
            }
            _ => (inner.cost, inner.each_seat),
        };
        Ok(Size {
            fields: inner.fields + 1,
            depth: inner.depth + 1,
            aliases: inner.aliases + usize::from(field.alias.is_some()),
            cost: inner_cost.saturating_add(each).saturating_mul(length).saturating_add(1),
            each_seat,
            roots: 1,
            height: inner.height,
        })
    }

    fn list_seats(&mut self, map: &Field, each: u64) -> Result<(), Refused> {
        let event = map.get_argument("eventId").and_then(|value| self.variables.text(&value.node));
        if let Some(event) = event.filter(|_| each > 0) {
            let sections = map.get_argument("sectionIds").and_then(|value| self.variables.texts(&value.node));
            if sections.as_ref().is_some_and(|sections| sections.len() > limits::LAYOUT_SECTIONS_MAX) {
                return Err(Refused::TooComplex(format!("at most {} sectionIds", limits::LAYOUT_SECTIONS_MAX)));
            }
            self.maps.push(SeatsListed { event, sections, each });
        }
        self.bound_maps()
    }

    fn fragment(&mut self, name: &'a Name) -> Result<Size, Refused> {
        match self.fragments.get(name) {
            Some(Some((size, maps))) => {
                let size = *size;
                // What is spread again is answered again.
                let maps = maps.clone();
                self.maps.extend(maps);
                self.bound_maps()?;
                return Ok(size);
            }
            Some(None) => return Err(Refused::Validation(format!("the fragment \"{name}\" spreads itself"))),
            None => {}
        }
        let Some(fragment) = self.document.fragments.get(name) else {
            return Err(Refused::Validation(format!("there is no fragment named \"{name}\"")));
        };
        self.fragments.insert(name, None);
        let before = self.maps.len();
        let size = self.set(&fragment.node.selection_set.node)?;
        let maps = self.maps.get(before..).unwrap_or_default().to_vec();
        self.fragments.insert(name, Some((size, maps)));
        Ok(size)
    }

    fn bound_maps(&self) -> Result<(), Refused> {
        if self.maps.len() > ROOT_FIELDS_MAX {
            return Err(Refused::TooComplex(format!("a document may list the seats of {ROOT_FIELDS_MAX} maps")));
        }
        Ok(())
    }

    /// A fragment that no operation uses. All operations together are as large as one may be: each is validated.
    fn unused(&mut self) -> Result<Option<String>, Refused> {
        let document = self.document;
        let mut fields = 0_usize;
        for (_, operation) in document.operations.iter() {
            self.inside = 0;
            fields = fields.saturating_add(self.set(&operation.node.selection_set.node)?.fields);
            if fields > FIELDS_MAX {
                return Err(Refused::TooComplex(format!("a document may ask for {FIELDS_MAX} fields")));
            }
        }
        Ok(self.document.fragments.keys().find(|name| !self.fragments.contains_key(*name)).map(Name::to_string))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(text: &str, operation_name: Option<&str>, variables: Option<&Json>) -> Result<Accepted, Refused> {
        parse(text, operation_name)?.judge(variables)
    }

    fn refused(text: &str) -> Refused {
        accept(text, None, None).unwrap_err()
    }

    #[test]
    fn ordinary_documents_pass_and_only_the_selected_operation_is_left() {
        assert_eq!(accept("{ a { b } }", None, None).unwrap().kind, OperationType::Query);
        let two = accept("query A { a } mutation B { b }", Some("B"), None).unwrap();
        assert_eq!(two.kind, OperationType::Mutation);
        assert!(matches!(two.document.operations, DocumentOperations::Single(_)));
        assert!(matches!(refused("query A { a } query B { b }"), Refused::Validation(_)));
        assert!(matches!(accept("{ a }", Some("X"), None), Err(Refused::Validation(_))));
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
        assert!(accept(&format!("{{ a(x: \"{many}\") }} # {many}"), None, None).is_ok());
        assert!(accept(&format!("{{ a(x: \"\"\"{many} \\\"\"\" {many}\"\"\") }}"), None, None).is_ok());
        assert!(accept(&format!("{{ a(x: \"\\\"{many}\") }}"), None, None).is_ok());
    }

    #[test]
    fn a_subscription_has_one_root_field() {
        assert!(accept("subscription { a }", None, None).is_ok());
        assert!(matches!(refused("subscription { a b }"), Refused::Validation(_)));
        assert!(matches!(refused("subscription { ...f } fragment f on S { a b }"), Refused::Validation(_)));
    }

    #[test]
    fn aliases_directives_mutations_and_long_chains_are_bounded() {
        let aliases: String = (0..5_000).map(|n| format!("a{n}: __typename ")).collect();
        assert!(matches!(refused(&format!("{{ {aliases} }}")), Refused::TooComplex(_)));
        let few: String = (0..200).map(|n| format!("a{n}: __typename ")).collect();
        assert!(accept(&format!("{{ x {{ {few} }} }}"), None, None).is_ok());
        assert!(matches!(refused(&format!("{{ a {} }}", "@x ".repeat(10_000))), Refused::TooComplex(_)));
        assert!(matches!(refused(&format!("query {} {{ a }}", "@x ".repeat(101))), Refused::TooComplex(_)));
        assert!(accept("mutation { a b c d e }", None, None).is_ok());
        assert!(matches!(refused("mutation { a b c d e f }"), Refused::TooComplex(_)));
        assert!(matches!(refused("mutation { ...m } fragment m on M { a b c d e f }"), Refused::TooComplex(_)));
        let chain: String = (0..2_000).map(|n| format!("fragment f{n} on T{{...f{}}}", n + 1)).collect();
        let chain = format!("{{...f0}} {chain} fragment f2000 on T{{x}}");
        assert!(chain.len() < BYTES_MAX, "{}", chain.len());
        assert!(matches!(refused(&chain), Refused::TooComplex(_)));
    }

    #[test]
    fn a_page_costs_what_it_holds_as_often_as_it_is_long() {
        let cost = |text: &str, variables: Json| accept(text, None, Some(&variables)).map(|accepted| accepted.cost);
        let nothing = || Json::Null;
        assert_eq!(cost("{ a { b } }", nothing()), Ok(2));
        assert_eq!(cost("{ bookings { nodes { id } } }", nothing()), Ok(1 + 20 * 2));
        assert_eq!(cost("{ bookings(first: 3) { nodes { id } } }", nothing()), Ok(1 + 3 * 2));
        let by_variable = "query($n: Int = 5) { bookings(first: $n) { nodes { id } } }";
        assert_eq!(cost(by_variable, nothing()), Ok(1 + 5 * 2));
        assert_eq!(cost(by_variable, serde_json::json!({ "n": 7 })), Ok(1 + 7 * 2));
        let deep = "{ venues(first: 100) { nodes { events(first: 100) { nodes { venue { events(first: 100) { nodes { id } } } } } } } }";
        assert!(matches!(cost(deep, nothing()), Err(Refused::TooComplex(_))));
    }

    #[test]
    fn listed_seats_cost_as_much_as_the_map_has() {
        let maps = |text: &str, variables: Json| accept(text, None, Some(&variables)).unwrap().maps;
        let listed = |sections: Option<&[&str]>, each| SeatsListed {
            event: "evt_1".to_owned(),
            sections: sections.map(|all| all.iter().map(|one| (*one).to_owned()).collect()),
            each,
        };
        let query = "query($e: ID!, $s: [ID!]) { seatMap(eventId: $e, sectionIds: $s) { sections { ...f } } } fragment f on S { statuses seats { seatId status } }";
        assert_eq!(maps(query, serde_json::json!({ "e": "evt_1" })), [listed(None, 2)]);
        assert_eq!(maps(query, serde_json::json!({ "e": "evt_1", "s": ["a"] })), [listed(Some(&["a"]), 2)]);
        let two = "{ a: seatMap(eventId: \"evt_1\") { sections { seats { x } } } b: seatMap(eventId: \"evt_1\", sectionIds: [\"b\"]) { sections { seats { x y z } } } }";
        assert_eq!(maps(two, Json::Null), [listed(None, 1), listed(Some(&["b"]), 3)]);
        assert_eq!(maps("{ seatMap(eventId: \"evt_1\") { sections { statuses } } }", Json::Null), []);
        let stream = "subscription { seatMapChanged(eventId: \"evt_1\") { ... on SeatMapSnapshot { sections { seats { x } } } } }";
        assert_eq!(maps(stream, Json::Null), [listed(None, 1)]);
    }

    #[test]
    fn what_hides_behind_fragments_other_operations_and_lists_of_ids_is_counted_too() {
        let spread = |times: usize| {
            let map = "fragment F on Query { seatMap(eventId: \"evt_1\") { sections { seats { seatId } } } }";
            format!("{{ {} }} {map}", "...F ".repeat(times))
        };
        assert_eq!(accept(&spread(3), None, None).unwrap().maps.len(), 3);
        assert!(matches!(refused(&spread(101)), Refused::TooComplex(_)));
        let many = serde_json::json!({ "s": vec!["sec_1"; 10_000] });
        let sections = "query($s: [ID!]) { seatMap(eventId: \"evt_1\", sectionIds: $s) { sections { seats { x } } } }";
        assert!(matches!(accept(sections, None, Some(&many)), Err(Refused::TooComplex(_))));
        let ids = serde_json::json!({ "i": vec!["x"; 100] });
        let nodes = |times: usize| {
            let fields: String = (0..times).map(|n| format!("a{n}: nodes(ids: $i) {{ id }} ")).collect();
            accept(&format!("query($i: [ID!]!) {{ {fields} }}"), None, Some(&ids)).map(|accepted| accepted.cost)
        };
        assert_eq!(nodes(1), Ok(1 + 100 * 11));
        assert!(matches!(nodes(100), Err(Refused::TooComplex(_))));
        let others: String = (0..15).map(|n| format!("query q{n} {{ ...b }} ")).collect();
        let body = format!("fragment b on Query {{ {} }}", "a ".repeat(190));
        assert!(accept(&format!("query z {{ a }} {others} {body}"), Some("z"), None).is_ok());
        let large = format!("fragment b on Query {{ {} }}", "x { a } ".repeat(190));
        assert!(matches!(
            accept(&format!("query z {{ a }} {others} {large}"), Some("z"), None),
            Err(Refused::TooComplex(_))
        ));
        let operations: String = (0..25).map(|n| format!("query q{n} {{ a }} ")).collect();
        assert!(matches!(accept(&operations, Some("q1"), None), Err(Refused::TooComplex(_))));
    }

    #[test]
    fn the_pages_are_those_of_the_schema() {
        let sdl = crate::graphql::sdl();
        let (mut pages, mut field) = (std::collections::BTreeSet::new(), "");
        for line in sdl.lines() {
            match line.trim_start().split_once('(') {
                Some((name, _)) if line.starts_with('\t') && !line.starts_with("\t\t") => field = name,
                _ => {}
            }
            if line.trim_start().starts_with("first: Int") {
                pages.insert(field.trim());
            }
        }
        assert_eq!(pages.into_iter().collect::<Vec<_>>(), PAGES);
    }

    #[test]
    fn what_is_asked_for_again_and_what_nobody_uses_is_judged_too() {
        let again = format!("{{ {} }}", "a ".repeat(300));
        assert!(matches!(refused(&again), Refused::TooComplex(_)));
        let roots = format!("{{ {} }}", "... { a } ".repeat(101));
        assert!(matches!(refused(&roots), Refused::TooComplex(_)));
        assert!(matches!(refused(&format!("{{ a({}) }}", "a:1,".repeat(31))), Refused::TooComplex(_)));
        assert!(matches!(refused("{ a } fragment f on T { a }"), Refused::Validation(_)));
        let two = "query A { ...fa } query B { ...fb } fragment fa on T { a } fragment fb on T { b }";
        let accepted = accept(two, Some("A"), None).unwrap();
        assert_eq!(accepted.document.fragments.keys().map(Name::as_str).collect::<Vec<_>>(), ["fa"]);
        let chain: String = (0..1_000).rev().map(|n| format!("fragment f{n} on T{{...f{}}}", n + 1)).collect();
        let upwards: String = (0..1_000).rev().map(|n| format!("...f{n} ")).collect();
        let bottom_up = format!("mutation {{ {upwards} }} {chain} fragment f1000 on T{{x}}");
        assert!(matches!(refused(&bottom_up), Refused::TooComplex(_)));
    }

    /// What a document may allocate, so that a change which makes the guard dearer shows.
    #[test]
    fn judging_allocates_little() {
        let documents = Documents::new(false);
        let text = "mutation($input: HoldSeatsInput!) { holdSeats(input: $input) { hold { id expiresAt } userErrors { code } } }";
        let variables =
            serde_json::json!({ "input": { "eventId": "evt_1", "idempotencyKey": "k", "seatIds": ["A-1", "A-2"] } });
        let accept = || assert!(documents.accept(text, None, Some(&variables)).is_ok());
        let first = allocation_counter::measure(accept);
        // The cache's own bookkeeping comes and goes.
        let again = (0..10).map(|_| allocation_counter::measure(accept).count_total).min();
        assert!(first.count_total <= 450, "{first:?}");
        assert!(again.is_some_and(|count| count <= 40), "{again:?}");
    }
}
