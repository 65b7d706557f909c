//! The API: the schema built from resolvers, each of which finds out who is asking, calls one function, and wraps the
//! answer.
//!
//! Invariants: no rule and no SQL here; failures become codes in `errors.rs` alone; what another buyer or organization
//! owns looks as if it did not exist.

pub mod errors;
pub mod guard;
mod inputs;
mod loaders;
mod mutation;
mod objects;
mod payloads;
mod query;
mod subscription;
mod validity;
pub mod watch;

pub use loaders::Loaders;

use crate::audit::Organizer;
use crate::auth::Role;
use crate::booking::Bookings;
use crate::catalogue::Catalogue;
use crate::config::Secret;
use crate::discovery::Discovery;
use crate::inventory::Inventory;
use crate::limit::Limiter;
use crate::sales::Sales;
use crate::seatmap::SeatMaps;
use crate::waiting::WaitingRooms;
use async_graphql::dataloader::DataLoader;
use async_graphql::{Context, Schema};
use errors::Failure;
use guard::Accepted;
use parterre_entity::{EventId, EventState, OrganizationId};
use parterre_schema::{Kind, LocalId, TopLevelCode, parse_node_id};
use sea_orm::DbErr;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The schema with its roots.
pub type ApiSchema = Schema<query::Query, mutation::Mutation, subscription::Subscription>;

/// What resolvers call.
#[derive(Clone, Debug)]
pub struct Services {
    /// What is on.
    pub catalogue: Catalogue,
    /// Who owns seats.
    pub inventory: Arc<Inventory>,
    /// Bookings and their money.
    pub bookings: Bookings,
    /// How events sell.
    pub sales: Sales,
    /// Seat maps.
    pub seat_maps: SeatMaps,
    /// Who may ask for seats of a hot event.
    pub waiting: WaitingRooms,
    /// How often one may ask, unless that is off.
    pub limiter: Option<Limiter>,
    /// Search.
    pub discovery: Discovery,
    /// Hints of bookings that changed.
    pub bus: Arc<dyn crate::bus::Bus>,
    /// Signs ticket codes.
    pub ticket_secret: Secret,
    /// Ends every stream.
    pub shutdown: CancellationToken,
}

/// Who is asking, if anybody we know.
#[derive(Clone, Debug)]
pub struct Viewer {
    /// The `sub` of the token.
    pub subject: String,
    /// What they may do.
    pub role: Role,
    /// An organizer's organization.
    pub organization: Option<OrganizationId>,
    /// A checked e-mail address.
    pub email: Option<String>,
}

/// Builds the schema.
#[must_use]
pub fn schema(services: Services, introspection: bool) -> ApiSchema {
    let loaders = DataLoader::new(Loaders { catalogue: services.catalogue.clone() }, tokio::spawn);
    let mut builder = Schema::build(query::Query, mutation::Mutation, subscription::Subscription)
        .data(services)
        .data(loaders)
        .register_output_type::<objects::Node>()
        .register_output_type::<errors::UserError>();
    // The guard has judged every document already, to the letter.
    builder = builder.validation_mode(async_graphql::ValidationMode::Fast);
    if !introspection {
        builder = builder.disable_introspection();
    }
    builder.finish()
}

/// What a document costs with the seats that it lists one by one.
pub async fn cost_of(services: &Services, accepted: &Accepted) -> Result<u64, DbErr> {
    let mut cost = accepted.cost;
    for listed in &accepted.maps {
        let id = parse_node_id(&listed.event).filter(|(kind, _)| *kind == Kind::Event).map(|(_, id)| EventId(id));
        let Some(id) = id else { continue };
        // What a draft would cost must not tell that there is one.
        let event = services.catalogue.recent(id).await.map_err(|error| DbErr::Custom(error.to_string()))?;
        let Some(layout) = event.filter(|event| event.state != EventState::Draft).and_then(|event| event.layout_id)
        else {
            continue;
        };
        let Some(layout) = services.catalogue.layout(layout).await? else { continue };
        let sections: Option<HashSet<i16>> = listed
            .sections
            .as_ref()
            .map(|ids| ids.iter().filter_map(|section| LocalId::Section.decode(id, section)).collect());
        let wanted = |section: &i16| sections.as_ref().is_none_or(|list| list.contains(section));
        let seats = layout.drawing.seats.iter().filter(|seat| wanted(&seat.section)).count();
        cost = cost.saturating_add(listed.each.saturating_mul(u64::try_from(seats).unwrap_or(u64::MAX)));
    }
    Ok(cost)
}

/// The schema as a document, as committed in `schema/schema.graphql`.
#[must_use]
pub fn sdl() -> String {
    let options = async_graphql::SDLExportOptions::new().sorted_fields().sorted_enum_items().sorted_arguments();
    let schema = Schema::build(query::Query, mutation::Mutation, subscription::Subscription)
        .register_output_type::<objects::Node>()
        .register_output_type::<errors::UserError>()
        .finish();
    let text = schema.sdl_with_options(options);
    let mut lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    while lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    lines.join("\n") + "\n"
}

/// Every code that a client may meet, as a table for people: generated, so that it can't be out of date.
#[must_use]
pub fn error_table() -> String {
    let mut table = "| code | where | what it means |\n|---|---|---|\n".to_owned();
    let sdl = sdl();
    let codes = sdl.split_once("enum UserErrorCode {").and_then(|(_, rest)| rest.split_once('}'));
    let mut meaning = String::new();
    for line in codes.map_or("", |(codes, _)| codes).lines().map(str::trim) {
        match line {
            "" => {}
            "\"\"\"" => {}
            code if code.chars().all(|c| c.is_ascii_uppercase() || c == '_') => {
                writeln!(table, "| `{code}` | `userErrors` | {meaning} |").ok();
                meaning.clear();
            }
            text if meaning.is_empty() => meaning.push_str(text),
            text => meaning.extend([" ", text]),
        }
    }
    for code in TopLevelCode::ALL {
        writeln!(table, "| `{}` | `errors` | {} |", code.as_str(), code.meaning().trim()).ok();
    }
    table
}

/// A field that may be null and may fail: the failure stays at the field.
pub(crate) type Nullable<T> = Option<async_graphql::Result<T>>;

/// The services of a request.
pub(crate) fn services<'a>(ctx: &Context<'a>) -> &'a Services {
    ctx.data_unchecked::<Services>()
}

/// The loaders of a request.
pub(crate) fn loaders<'a>(ctx: &Context<'a>) -> &'a DataLoader<Loaders> {
    ctx.data_unchecked::<DataLoader<Loaders>>()
}

/// Who is asking, or UNAUTHENTICATED.
pub(crate) fn viewer<'a>(ctx: &Context<'a>) -> Result<&'a Viewer, Failure> {
    ctx.data_opt::<Viewer>().ok_or(Failure::Unauthenticated)
}

/// Who is asking, if anybody.
pub(crate) fn viewer_opt<'a>(ctx: &Context<'a>) -> Option<&'a Viewer> {
    ctx.data_opt::<Viewer>()
}

impl Viewer {
    /// Acting for an organization, if this is somebody who may.
    #[must_use]
    pub fn organizer(&self) -> Option<Organizer> {
        match self.role {
            Role::Organizer => {
                self.organization.map(|organization| Organizer { actor: self.subject.clone(), organization })
            }
            Role::Buyer | Role::Admin => None,
        }
    }

    /// Whether this is somebody of an organization.
    #[must_use]
    pub fn is_of(&self, organization: OrganizationId) -> bool {
        self.organizer().is_some_and(|organizer| organizer.organization == organization)
    }
}
