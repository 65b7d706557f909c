//! Words, folded the same way on both sides: case, accents and compatibility forms gone, scripts without spaces cut into
//! characters.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// A longer word is cut: nobody types it, and it would only bloat the dictionary.
const WORD_CHARS_MAX: usize = 40;

/// The words of a text, in order.
#[must_use]
pub fn words(text: &str) -> Vec<String> {
    let mut words = Words::default();
    // White space ends a word whatever is around it, and most of what is between needs no folding but that of case.
    for part in text.split_ascii_whitespace() {
        if part.is_ascii() {
            part.chars().for_each(|c| words.take(c.to_ascii_lowercase()));
        } else {
            part.nfkd()
                .filter(|c| !is_combining_mark(*c))
                .nfc()
                .flat_map(char::to_lowercase)
                .for_each(|c| words.take(c));
        }
        words.end();
    }
    words.done
}

/// Words, and the one that is being read.
#[derive(Default)]
struct Words {
    done: Vec<String>,
    word: String,
    chars: usize,
}

impl Words {
    fn take(&mut self, c: char) {
        if is_own_word(c) {
            self.end();
            self.done.push(c.to_string());
        } else if c.is_alphanumeric() {
            if self.chars < WORD_CHARS_MAX {
                self.chars += plain(c, &mut self.word);
            }
        } else if !matches!(c, '\'' | '’' | '.') {
            // "Ain't" and "R.E.M." are one word each.
            self.end();
        }
    }

    fn end(&mut self) {
        self.chars = 0;
        if !self.word.is_empty() {
            self.done.push(std::mem::take(&mut self.word));
        }
    }
}

/// Letters that Unicode does not take apart but people leave out. Returns how many are written.
fn plain(c: char, word: &mut String) -> usize {
    let letters = match c {
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'ø' => "o",
        'ł' => "l",
        'đ' | 'ð' => "d",
        'þ' => "th",
        'ı' => "i",
        'ħ' => "h",
        other => {
            word.push(other);
            return 1;
        }
    };
    word.push_str(letters);
    letters.len()
}

/// Han and kana have no spaces between words: each character is one.
fn is_own_word(c: char) -> bool {
    matches!(u32::from(c), 0x3040..=0x30FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0x20000..=0x2FA1F)
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn what_people_type_meets_what_is_written() {
        assert_eq!(words("Sigur Rós"), words("sigur ros"));
        assert_eq!(words("BJÖRK"), ["bjork"]);
        assert_eq!(words("Łódź — Straße"), ["lodz", "strasse"]);
        assert_eq!(words("Ain't Misbehavin'"), ["aint", "misbehavin"]);
        assert_eq!(words("東京 Dome"), ["東", "京", "dome"]);
        assert_eq!(words("Кино́"), ["кино"]);
        assert_eq!(words("ＡＣ/ＤＣ"), ["ac", "dc"]);
        assert!(words(" \u{0} ,;! ").is_empty());
        assert_eq!(words(&"x".repeat(1000))[0].len(), 40);
        assert_eq!(words("R.E.M. vs.\u{a0}Motörhead\u{b}and AC/DC"), ["rem", "vs", "motorhead", "and", "ac", "dc"]);
        assert_eq!(words("e\u{301}\u{301} 한국 x\u{300}y"), ["e", "한국", "xy"]);
    }
}
