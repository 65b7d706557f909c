//! Every limit an input meets, in one place. A value beyond one is `INVALID_INPUT`, or `BAD_USER_INPUT` in a query.

/// Characters of a name, a title or an e-mail address.
pub const NAME_CHARS_MAX: usize = 200;
/// Characters of a description or a reason.
pub const DESCRIPTION_CHARS_MAX: usize = 5_000;
/// Characters of a category, a genre, a locale.
pub const WORD_CHARS_MAX: usize = 100;
/// Characters of an idempotency key.
pub const KEY_CHARS_MAX: usize = 128;
/// Characters of a search text.
pub const SEARCH_CHARS_MAX: usize = 200;
/// Characters of a URL.
pub const URL_CHARS_MAX: usize = 2_000;
/// Characters of a row's name or a seat's number.
pub const SEAT_WORD_CHARS_MAX: usize = 50;
/// Seats of one layout.
pub const LAYOUT_SEATS_MAX: usize = 200_000;
/// Sections, or price zones, of one layout.
pub const LAYOUT_SECTIONS_MAX: usize = 1_000;
/// Seats named in one hold.
pub const HOLD_SEATS_MAX: usize = 100;
/// Admissions of one tier, or seats of best available, in one hold.
pub const HOLD_QUANTITY_MAX: i32 = 100;
/// Seats named in one `blockSeats`.
pub const BLOCK_SEATS_MAX: usize = 10_000;
/// Performers of one event.
pub const PERFORMERS_MAX: usize = 50;
/// Tiers of one event.
pub const TIERS_MAX: usize = 50;
/// Capacity of one tier.
pub const TIER_CAPACITY_MAX: i32 = 1_000_000;
/// Values of one filter list, and ids of one `nodes`.
pub const LIST_MAX: usize = 100;
/// Entries of a page.
pub const PAGE_MAX: i32 = 100;
/// Entries of a page when none are asked for.
pub const PAGE_DEFAULT: i32 = 20;
/// Characters of a layout import's document.
pub const PLAN_CHARS_MAX: usize = 15 * 1024 * 1024;
