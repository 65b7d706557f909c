//! Ids as clients see them: opaque, with a prefix that tells people the kind.
//!
//! A node id is `evt_` and the 32 hex digits of a UUID. A section, price zone or tier exists once an event, so its id
//! is the event's UUID and a number: `sec_<uuid>_3`.

use uuid::Uuid;

/// What a node id names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `evt_`
    Event,
    /// `ven_`
    Venue,
    /// `lay_`
    Layout,
    /// `prf_`
    Performer,
    /// `org_`
    Organizer,
    /// `hold_`
    Hold,
    /// `bkg_`
    Booking,
    /// `pay_`
    Payment,
    /// `rfd_`
    Refund,
    /// `tkt_`
    Ticket,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Event,
        Self::Venue,
        Self::Layout,
        Self::Performer,
        Self::Organizer,
        Self::Hold,
        Self::Booking,
        Self::Payment,
        Self::Refund,
        Self::Ticket,
    ];

    /// The prefix, without its underscore.
    #[must_use]
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Event => "evt",
            Self::Venue => "ven",
            Self::Layout => "lay",
            Self::Performer => "prf",
            Self::Organizer => "org",
            Self::Hold => "hold",
            Self::Booking => "bkg",
            Self::Payment => "pay",
            Self::Refund => "rfd",
            Self::Ticket => "tkt",
        }
    }
}

/// The id clients get: `evt_0193…`.
pub fn node_id(kind: Kind, id: impl Into<Uuid>) -> async_graphql::ID {
    async_graphql::ID(format!("{}_{}", kind.prefix(), id.into().simple()))
}

/// The kind and UUID of a node id, or `None` if it isn't one that [`node_id`] could have made.
#[must_use]
pub fn parse_node_id(text: &str) -> Option<(Kind, Uuid)> {
    let (prefix, digits) = text.split_once('_')?;
    let kind = Kind::ALL.into_iter().find(|kind| kind.prefix() == prefix)?;
    Some((kind, parse_uuid(digits)?))
}

/// Exactly 32 lower-case hex digits: one id has one spelling.
fn parse_uuid(digits: &str) -> Option<Uuid> {
    let canonical = digits.len() == 32 && digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    canonical.then(|| Uuid::try_parse(digits).ok()).flatten()
}

/// What an id that is unique per event names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalId {
    /// `sec_`
    Section,
    /// `zon_`
    Zone,
    /// `tier_`
    Tier,
}

impl LocalId {
    const fn prefix(self) -> &'static str {
        match self {
            Self::Section => "sec",
            Self::Zone => "zon",
            Self::Tier => "tier",
        }
    }

    /// The id of number `no` of an event.
    pub fn encode(self, event: impl Into<Uuid>, no: i16) -> async_graphql::ID {
        async_graphql::ID(format!("{}_{}_{no}", self.prefix(), event.into().simple()))
    }

    /// The number, if `text` is such an id of this event.
    pub fn decode(self, event: impl Into<Uuid>, text: &str) -> Option<i16> {
        let mut parts = text.split('_');
        let (prefix, digits, no) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() || prefix != self.prefix() || parse_uuid(digits)? != event.into() {
            return None;
        }
        let no: i16 = no.parse().ok()?;
        (no >= 0 && self.encode(parse_uuid(digits)?, no).as_str() == text).then_some(no)
    }
}

/// Where a layout's geometry is, for as long as the layout lives. Relative to the server.
#[must_use]
pub fn geometry_url(layout: impl Into<Uuid>, hash: &str) -> String {
    format!("/layouts/{}/{hash}.json", node_id(Kind::Layout, layout).as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_reads_its_own_ids_and_no_other_spelling() {
        let id = Uuid::now_v7();
        for kind in Kind::ALL {
            let text = node_id(kind, id);
            assert_eq!(parse_node_id(&text), Some((kind, id)));
            assert_eq!(parse_node_id(&text.to_uppercase()), None);
            assert_eq!(parse_node_id(&format!("{}x", text.as_str())), None);
        }
        assert_eq!(parse_node_id(""), None);
        assert_eq!(parse_node_id("evt"), None);
        assert_eq!(parse_node_id(&format!("evt_{id}")), None, "hyphens are another spelling");
    }

    #[test]
    fn a_section_of_another_event_is_no_section() {
        let (mine, other) = (Uuid::now_v7(), Uuid::now_v7());
        let id = LocalId::Section.encode(mine, 3);
        assert_eq!(LocalId::Section.decode(mine, &id), Some(3));
        assert_eq!(LocalId::Section.decode(other, &id), None);
        assert_eq!(LocalId::Tier.decode(mine, &id), None);
        assert_eq!(LocalId::Section.decode(mine, &format!("sec_{}_03", mine.simple())), None);
        assert_eq!(LocalId::Section.decode(mine, &format!("sec_{}_-1", mine.simple())), None);
    }
}
