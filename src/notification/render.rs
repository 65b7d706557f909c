//! A message's two bodies, from the templates beside this room.

use super::facts::Facts;
use askama::Template;

/// For readers that show no HTML.
#[derive(Template)]
#[template(path = "message.txt", escape = "none", config = "src/notification/askama.toml")]
struct Text<'a> {
    facts: &'a Facts,
}

/// With the codes to be scanned, which are attached and named by their content ids.
#[derive(Template)]
#[template(path = "message.html", config = "src/notification/askama.toml")]
struct Html<'a> {
    facts: &'a Facts,
}

pub(super) fn text(facts: &Facts) -> Result<String, askama::Error> {
    Text { facts }.render()
}

pub(super) fn html(facts: &Facts) -> Result<String, askama::Error> {
    Html { facts }.render()
}
