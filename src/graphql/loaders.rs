//! Reads of many objects in one statement each, gathered from all resolvers of a request.

use crate::catalogue::Catalogue;
use async_graphql::dataloader::Loader;
use parterre_entity::{
    EventId, LayoutId, OrganizationId, VenueId, event, event_tier, event_zone, layout, organization, performer, venue,
};
use sea_orm::DbErr;
use std::collections::HashMap;
use std::sync::Arc;

/// The loaders.
#[derive(Clone, Debug)]
pub struct Loaders {
    pub(super) catalogue: Catalogue,
}

/// The bill of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct BillOf(pub(super) EventId);
/// The price zones of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ZonesOf(pub(super) EventId);
/// The tiers of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TiersOf(pub(super) EventId);
/// What of an event may still be sold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct RemainingOf(pub(super) EventId);

macro_rules! loaders {
    ($($key:ty => $value:ty, $method:ident, $wrap:expr, $id:expr;)*) => {$(
        impl Loader<$key> for Loaders {
            type Value = $value;
            type Error = Arc<DbErr>;

            async fn load(&self, keys: &[$key]) -> Result<HashMap<$key, $value>, Arc<DbErr>> {
                let ids: Vec<_> = keys.iter().map($id).collect();
                let found = self.catalogue.$method(&ids).await.map_err(Arc::new)?;
                Ok(found.into_iter().map(|(id, value)| ($wrap(id), value)).collect())
            }
        }
    )*};
}

loaders! {
    EventId => event::Model, events, std::convert::identity, |key: &EventId| *key;
    VenueId => venue::Model, venues, std::convert::identity, |key: &VenueId| *key;
    OrganizationId => organization::Model, organizations, std::convert::identity, |key: &OrganizationId| *key;
    LayoutId => layout::Model, layout_rows, std::convert::identity, |key: &LayoutId| *key;
    BillOf => Vec<performer::Model>, bills, BillOf, |key: &BillOf| key.0;
    ZonesOf => Vec<event_zone::Model>, zones, ZonesOf, |key: &ZonesOf| key.0;
    TiersOf => Vec<event_tier::Model>, tiers, TiersOf, |key: &TiersOf| key.0;
    RemainingOf => i64, remaining, RemainingOf, |key: &RemainingOf| key.0;
}
