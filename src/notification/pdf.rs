//! The tickets of a booking as a PDF, one page each, to be printed or shown.

use super::facts::{Admission, Facts};
use super::qr::Squares;
use krilla::Document;
use krilla::color::rgb;
use krilla::geom::{PathBuilder, Point, Rect};
use krilla::num::NormalizedF32;
use krilla::page::PageSettings;
use krilla::paint::{Fill, FillRule};
use krilla::surface::Surface;
use krilla::text::{Font, TextDirection};

/// A6 upright, in points.
const WIDTH: f32 = 298.0;
const HEIGHT: f32 = 420.0;
const MARGIN: f32 = 24.0;
/// The side of the code.
const CODE: f32 = 200.0;

/// Draws them; none if something of them can't be drawn.
pub(super) fn tickets(facts: &Facts) -> Option<Vec<u8>> {
    let regular = Font::new(dejavu::sans::regular().to_vec().into(), 0)?;
    let bold = Font::new(dejavu::sans::bold().to_vec().into(), 0)?;
    let mut document = Document::new();
    for ticket in &facts.tickets {
        let mut page = document.start_page_with(PageSettings::from_wh(WIDTH, HEIGHT)?);
        let mut surface = page.surface();
        draw(&mut surface, (&regular, &bold), facts, ticket)?;
        surface.finish();
        page.finish();
    }
    document.finish().ok()
}

fn draw(surface: &mut Surface<'_>, (regular, bold): (&Font, &Font), facts: &Facts, ticket: &Admission) -> Option<()> {
    surface.set_fill(Some(Fill {
        paint: rgb::Color::new(29, 27, 24).into(),
        opacity: NormalizedF32::ONE,
        rule: FillRule::NonZero,
    }));
    let mut y = MARGIN;
    let mut write = |surface: &mut Surface<'_>, font: &Font, size: f32, text: &str| {
        for line in wrapped(text, size) {
            let baseline = Point::from_xy(MARGIN, y + size);
            surface.draw_text(baseline, font.clone(), size, &line, false, TextDirection::Auto);
            y += size * 1.4;
        }
    };
    write(surface, bold, 15.0, &facts.title);
    write(surface, regular, 9.0, &facts.starts);
    write(surface, regular, 9.0, &facts.venue);
    write(surface, bold, 11.0, &ticket.what);
    let booking = format!("{} {}", facts.language.booking(), facts.booking_code);
    write(surface, regular, 9.0, &booking);
    let squares = Squares::of(&ticket.code)?;
    let side = CODE / f32::from(u16::try_from(squares.size).ok()?);
    let (left, top) = ((WIDTH - CODE) / 2.0, HEIGHT - MARGIN - CODE - 14.0);
    let mut path = PathBuilder::new();
    for row in 0..squares.size {
        for column in (0..squares.size).filter(|column| squares.is_dark(*column, row)) {
            let at = |place: usize| u16::try_from(place).map(f32::from).ok();
            path.push_rect(Rect::from_xywh(left + at(column)? * side, top + at(row)? * side, side, side)?);
        }
    }
    surface.draw_path(&path.finish()?);
    let below = Point::from_xy(left, HEIGHT - MARGIN);
    surface.draw_text(below, regular.clone(), 7.0, &ticket.code, false, TextDirection::Auto);
    Some(())
}

/// A text in lines that fit the page: DejaVu's letters are some 0.6 of their size wide on the average.
fn wrapped(text: &str, size: f32) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut left = WIDTH - 2.0 * MARGIN;
    for word in text.split_whitespace() {
        let wide = size * 0.6 * f32::from(u16::try_from(word.chars().count() + 1).unwrap_or(u16::MAX));
        if wide > left && lines.last().is_some_and(|line| !line.is_empty()) {
            lines.push(String::new());
            left = WIDTH - 2.0 * MARGIN;
        }
        left -= wide;
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}
