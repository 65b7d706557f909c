//! The trail of what organizers and admins wrote, kept in the transaction that wrote it.

use crate::sql;
use parterre_entity::OrganizationId;
use sea_orm::{ConnectionTrait, DbErr};
use uuid::Uuid;

/// Who acts for an organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Organizer {
    /// The token's subject.
    pub actor: String,
    /// Whose objects may be written.
    pub organization: OrganizationId,
}

/// Appends what an admin wrote to the trail: a word for it, and the id of what was written.
pub async fn record_admin(
    transaction: &impl ConnectionTrait,
    actor: &str,
    what: (&'static str, Uuid),
    detail: serde_json::Value,
) -> Result<(), DbErr> {
    append(transaction, (actor, None), what, detail).await
}

/// Appends to the trail.
pub async fn record(
    transaction: &impl ConnectionTrait,
    who: &Organizer,
    action: &'static str,
    subject: impl Into<Uuid>,
    detail: serde_json::Value,
) -> Result<(), DbErr> {
    append(transaction, (&who.actor, Some(who.organization.0)), (action, subject.into()), detail).await
}

async fn append(
    transaction: &impl ConnectionTrait,
    (actor, organization): (&str, Option<Uuid>),
    (action, subject): (&'static str, Uuid),
    detail: serde_json::Value,
) -> Result<(), DbErr> {
    transaction
        .execute_raw(sql!(
            "INSERT INTO audit (actor, organization_id, action, subject_id, detail) VALUES ($1, $2, $3, $4, $5)",
            actor,
            organization,
            action,
            subject,
            detail
        ))
        .await
        .map(drop)
}
