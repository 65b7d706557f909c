//! Words, folded the same way on both sides: case, accents and compatibility forms gone, scripts without spaces cut into
//! characters.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// A longer word is cut: nobody types it, and it would only bloat the dictionary.
const WORD_CHARS_MAX: usize = 40;

/// The words of a text, in order.
#[must_use]
pub fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let folded = text.nfkd().filter(|c| !is_combining_mark(*c)).nfc().flat_map(char::to_lowercase);
    for c in folded {
        if is_own_word(c) {
            push(&mut words, &mut word);
            words.push(c.to_string());
        } else if c.is_alphanumeric() {
            if word.chars().count() < WORD_CHARS_MAX {
                plain(c, &mut word);
            }
        } else if !matches!(c, '\'' | '’' | '.') {
            // "Ain't" and "R.E.M." are one word each.
            push(&mut words, &mut word);
        }
    }
    push(&mut words, &mut word);
    words
}

fn push(words: &mut Vec<String>, word: &mut String) {
    if !word.is_empty() {
        words.push(std::mem::take(word));
    }
}

/// Letters that Unicode does not take apart but people leave out.
fn plain(c: char, word: &mut String) {
    match c {
        'ß' => word.push_str("ss"),
        'æ' => word.push_str("ae"),
        'œ' => word.push_str("oe"),
        'ø' => word.push('o'),
        'ł' => word.push('l'),
        'đ' | 'ð' => word.push('d'),
        'þ' => word.push_str("th"),
        'ı' => word.push('i'),
        'ħ' => word.push('h'),
        other => word.push(other),
    }
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
    }
}
