//! The words of messages, by language. English unless the buyer's locale says otherwise.

use super::Kind;
use chrono::DateTime;
use chrono_tz::Tz;

/// A language messages are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    English,
    German,
}

impl Language {
    /// By a BCP 47 tag: `de`, `de-AT`.
    pub(super) fn of(locale: Option<&str>) -> Self {
        let language = locale.unwrap_or_default().split(['-', '_']).next().unwrap_or_default();
        if language.eq_ignore_ascii_case("de") { Self::German } else { Self::English }
    }

    pub(super) const fn tag(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::German => "de",
        }
    }

    pub(super) fn local_time(self, at: DateTime<Tz>) -> String {
        match self {
            Self::English => at.format("%A %-d %B %Y, %H:%M (%Z)").to_string(),
            Self::German => at.format("%d.%m.%Y, %H:%M Uhr (%Z)").to_string(),
        }
    }

    pub(super) fn seat(self, section: &str, row: &str, number: &str) -> String {
        match self {
            Self::English => format!("{section}, row {row}, seat {number}"),
            Self::German => format!("{section}, Reihe {row}, Platz {number}"),
        }
    }

    pub(super) fn subject(self, kind: Kind, title: &str) -> String {
        match (self, kind) {
            (Self::English, Kind::Confirmed) => format!("Your tickets: {title}"),
            (Self::English, Kind::Cancelled) => format!("Cancelled: {title}"),
            (Self::English, Kind::Refunded) => format!("Refunded: {title}"),
            (Self::German, Kind::Confirmed) => format!("Deine Tickets: {title}"),
            (Self::German, Kind::Cancelled) => format!("Storniert: {title}"),
            (Self::German, Kind::Refunded) => format!("Erstattet: {title}"),
        }
    }

    pub(super) const fn greeting(self, kind: Kind) -> &'static str {
        match (self, kind) {
            (Self::English, Kind::Confirmed) => "Your booking is confirmed. Show one code for each person at the door.",
            (Self::English, Kind::Cancelled) => "Your booking is cancelled. Its tickets are not valid any more.",
            (Self::English, Kind::Refunded) => "Your money is on its way back to what you paid with.",
            (Self::German, Kind::Confirmed) => {
                "Deine Buchung ist bestätigt. Zeige am Einlass für jede Person einen Code."
            }
            (Self::German, Kind::Cancelled) => "Deine Buchung ist storniert. Ihre Tickets gelten nicht mehr.",
            (Self::German, Kind::Refunded) => "Dein Geld ist auf dem Weg zurück zu deinem Zahlungsmittel.",
        }
    }

    pub(super) const fn called_off(self) -> &'static str {
        match self {
            Self::English => "The organizer cancelled the event.",
            Self::German => "Die Veranstaltung wurde abgesagt.",
        }
    }

    pub(super) const fn booking(self) -> &'static str {
        match self {
            Self::English => "Booking",
            Self::German => "Buchung",
        }
    }

    pub(super) const fn total(self) -> &'static str {
        match self {
            Self::English => "Total",
            Self::German => "Summe",
        }
    }

    pub(super) const fn refund(self) -> &'static str {
        match self {
            Self::English => "Refund",
            Self::German => "Erstattung",
        }
    }

    pub(super) const fn ticket(self) -> &'static str {
        match self {
            Self::English => "Ticket",
            Self::German => "Ticket",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locale_chooses_a_language_and_english_is_the_rest() {
        for (locale, language) in [
            (Some("de"), Language::German),
            (Some("de-AT"), Language::German),
            (Some("DE_CH"), Language::German),
            (Some("den"), Language::English),
            (Some("fr"), Language::English),
            (None, Language::English),
        ] {
            assert_eq!(Language::of(locale), language, "{locale:?}");
        }
    }
}
