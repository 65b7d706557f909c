//! A ticket's code as squares.

use fast_qr::{ECL, QRBuilder};

/// The dark squares of a QR code, row by row.
#[derive(Clone, Debug)]
pub(super) struct Squares {
    /// Squares a side.
    pub(super) size: usize,
    dark: Vec<bool>,
}

impl Squares {
    /// Of a code; none if it is too long for one, which no ticket's is.
    pub(super) fn of(code: &str) -> Option<Self> {
        let qr = QRBuilder::new(code).ecl(ECL::M).build().ok()?;
        let dark = qr.data.iter().take(qr.size * qr.size).map(|module| module.value()).collect();
        Some(Self { size: qr.size, dark })
    }

    /// Whether the square at a place is dark.
    pub(super) fn is_dark(&self, x: usize, y: usize) -> bool {
        x < self.size && self.dark.get(y * self.size + x).copied().unwrap_or(false)
    }

    /// As a PNG, with its quiet zone.
    pub(super) fn png(&self) -> Result<Vec<u8>, png::EncodingError> {
        const SCALE: usize = 6;
        const QUIET: usize = 4;
        let side = (self.size + 2 * QUIET) * SCALE;
        let pixel = |at: usize| {
            let (x, y) = ((at % side) / SCALE, (at / side) / SCALE);
            let dark = x >= QUIET && y >= QUIET && self.is_dark(x - QUIET, y - QUIET);
            if dark { 0_u8 } else { 255 }
        };
        let pixels: Vec<u8> = (0..side * side).map(pixel).collect();
        let width = u32::try_from(side).unwrap_or_default();
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, width, width);
        encoder.set_color(png::ColorType::Grayscale);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&pixels)?;
        writer.finish()?;
        Ok(file)
    }
}
