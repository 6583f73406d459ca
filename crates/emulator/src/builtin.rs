//! A tokenizer that needs no file: every text goes to ids and back unchanged, at about four bytes a token.
//!
//! A token is a run of letters in lower case (the first may be a capital) of at most six letters, with the space before
//! it, or else up to three bytes of anything. Its id is its place in the enumeration of all such pieces, so neither
//! direction needs a table. The words ` a`, ` b`, … ` zzzzzz` come first: ids drawn at random from a usual vocabulary
//! size (8 to 321 million) are words with a space before them, whose text gives the same ids again.

/// Ids below this are the special tokens, by place.
const SPECIALS: [&str; 8] = [
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|reserved_3|>",
    "<|reserved_4|>",
    "<|reserved_5|>",
    "<|reserved_6|>",
    "<|reserved_7|>",
];

/// Ends an answer.
pub(crate) const END_OF_TEXT: u32 = 0;

const LONGEST_WORD: usize = 6;
/// Words of one to six letters.
const WORDS: u32 = 26 + 676 + 17_576 + 456_976 + 11_881_376 + 308_915_776;
const FIRST_WORD: u32 = SPECIALS.len() as u32;
const FIRST_BYTE: u32 = FIRST_WORD + 4 * WORDS;
const FIRST_PAIR: u32 = FIRST_BYTE + 256;
const FIRST_TRIPLE: u32 = FIRST_PAIR + 65_536;

/// How many ids there are.
pub(crate) const VOCABULARY: u32 = FIRST_TRIPLE + 16_777_216;

/// Appends the ids of `text`.
pub(crate) fn encode(text: &str, out: &mut Vec<u32>) {
    let bytes = text.as_bytes();
    out.reserve(bytes.len() / 4 + 1);
    let mut at = 0;
    while at < bytes.len() {
        let (id, length) = piece(text, at);
        out.push(id);
        at += length;
    }
}

/// The text of `ids`; what is not UTF-8, and ids past the vocabulary, become U+FFFD.
pub(crate) fn decode(ids: &[u32]) -> String {
    let mut bytes = Vec::with_capacity(ids.len() * 6);
    for &id in ids {
        decode_one(id, &mut bytes);
    }
    String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

/// The id and the length of the token at `at`.
fn piece(text: &str, at: usize) -> (u32, usize) {
    let bytes = &text.as_bytes()[at..];
    if let Some(id) = special(bytes) {
        return (id, SPECIALS[id as usize].len());
    }
    let spaced = usize::from(bytes[0] == b' ');
    let letters = word_length(&bytes[spaced..]);
    if letters > 0 {
        let word = &bytes[spaced..spaced + letters];
        let form = u32::from(spaced == 0) + 2 * u32::from(word[0].is_ascii_uppercase());
        return (FIRST_WORD + form * WORDS + word_index(word), spaced + letters);
    }
    let length = other_length(bytes);
    let number = bytes[..length].iter().fold(0u32, |n, &b| n << 8 | u32::from(b));
    (number + [FIRST_BYTE, FIRST_PAIR, FIRST_TRIPLE][length - 1], length)
}

fn special(bytes: &[u8]) -> Option<u32> {
    if !bytes.starts_with(b"<|") {
        return None;
    }
    SPECIALS.iter().position(|s| bytes.starts_with(s.as_bytes())).map(|i| i as u32)
}

fn word_length(bytes: &[u8]) -> usize {
    match bytes.first() {
        Some(b) if b.is_ascii_alphabetic() => {
            let rest = bytes[1..].iter().take(LONGEST_WORD - 1);
            1 + rest.take_while(|b| b.is_ascii_lowercase()).count()
        }
        _ => 0,
    }
}

/// How many bytes, one to three, belong to no word; a character is not cut where it fits.
fn other_length(bytes: &[u8]) -> usize {
    let mut length = 1;
    while length < 3 && length < bytes.len() {
        let rest = &bytes[length..];
        let begins_word = word_length(&rest[usize::from(rest[0] == b' ')..]) > 0;
        if begins_word || special(rest).is_some() {
            break;
        }
        let (first, character) = (bytes[length], character_length(bytes[length]));
        if first >= 0xc0 && length + character > 3 {
            break;
        }
        length += 1;
    }
    length
}

fn character_length(first: u8) -> usize {
    match first {
        0xf0.. => 4,
        0xe0.. => 3,
        0xc0.. => 2,
        _ => 1,
    }
}

/// The place of a word among all words of one to six letters, shorter ones first, whatever its case.
fn word_index(word: &[u8]) -> u32 {
    let (mut index, mut shorter, mut of_length) = (0u32, 0u32, 26u32);
    for (i, &b) in word.iter().enumerate() {
        index = index * 26 + u32::from(b.to_ascii_lowercase() - b'a');
        if i > 0 {
            shorter += of_length;
            of_length = of_length.wrapping_mul(26);
        }
    }
    shorter + index
}

fn decode_one(id: u32, out: &mut Vec<u8>) {
    match id {
        0..FIRST_WORD => out.extend_from_slice(SPECIALS[id as usize].as_bytes()),
        FIRST_WORD..FIRST_BYTE => {
            let (form, index) = ((id - FIRST_WORD) / WORDS, (id - FIRST_WORD) % WORDS);
            if form & 1 == 0 {
                out.push(b' ');
            }
            let start = out.len();
            push_word(index, out);
            if form & 2 != 0 {
                out[start].make_ascii_uppercase();
            }
        }
        FIRST_BYTE..FIRST_PAIR => out.push((id - FIRST_BYTE) as u8),
        FIRST_PAIR..FIRST_TRIPLE => out.extend_from_slice(&((id - FIRST_PAIR) as u16).to_be_bytes()),
        FIRST_TRIPLE..VOCABULARY => out.extend_from_slice(&(id - FIRST_TRIPLE).to_be_bytes()[1..]),
        VOCABULARY.. => out.extend_from_slice("\u{fffd}".as_bytes()),
    }
}

fn push_word(mut index: u32, out: &mut Vec<u8>) {
    let (mut length, mut of_length) = (1, 26u32);
    while length < LONGEST_WORD && index >= of_length {
        index -= of_length;
        of_length *= 26;
        length += 1;
    }
    let start = out.len();
    out.resize(start + length, 0);
    for place in out[start..].iter_mut().rev() {
        *place = b'a' + (index % 26) as u8;
        index /= 26;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ids(text: &str) -> Vec<u32> {
        let mut out = Vec::new();
        encode(text, &mut out);
        out
    }

    fn pieces(text: &str) -> Vec<String> {
        ids(text).iter().map(|&id| decode(&[id])).collect()
    }

    #[test]
    fn cuts_where_a_reader_would() {
        assert_eq!(pieces("Hello world"), ["Hello", " world"]);
        assert_eq!(
            pieces("the tokenization of HTTP, 2026.\n\n"),
            ["the", " tokeni", "zation", " of", " H", "T", "T", "P", ", 2", "026", ".\n\n"]
        );
        assert_eq!(pieces("<|im_start|>user\nhi<|im_end|>"), ["<|im_start|>", "user", "\n", "hi", "<|im_end|>"]);
        assert_eq!(pieces("日本 é"), ["日", "本", " é"]);
    }

    #[test]
    fn english_takes_about_four_bytes_a_token() {
        let text =
            "A serving system answers many people at once, and what they notice is the slowest answer, not the mean.";
        let per_token = text.len() as f64 / ids(text).len() as f64;
        assert!((3.5..5.0).contains(&per_token), "{per_token}");
    }

    #[test]
    fn ids_are_their_pieces_places() {
        assert_eq!(decode(&[8, 33, 34, 35]), " a z aa ab");
        assert_eq!(decode(&[FIRST_WORD + WORDS - 1]), " zzzzzz");
        assert_eq!(ids(" zzzzzz"), [FIRST_WORD + WORDS - 1]);
        assert_eq!(ids("Zzzzzz"), [FIRST_BYTE - 1]);
        assert_eq!(decode(&[VOCABULARY - 1, VOCABULARY]), "\u{fffd}\u{fffd}\u{fffd}\u{fffd}");
    }

    proptest! {
        #[test]
        fn every_text_comes_back(text in any::<String>()) {
            prop_assert_eq!(decode(&ids(&text)), text);
        }

        #[test]
        fn every_text_of_words_comes_back(text in "[a-zA-Z <|_ims.,0-9é日\n]{0,60}") {
            prop_assert_eq!(decode(&ids(&text)), text);
        }

        #[test]
        fn ids_of_a_usual_vocabulary_come_back(tokens in prop::collection::vec(8u32..200_000, 0..50)) {
            prop_assert_eq!(ids(&decode(&tokens)), tokens);
        }

        #[test]
        fn any_id_is_one_piece_of_text_or_none(id in any::<u32>()) {
            let mut bytes = Vec::new();
            decode_one(id, &mut bytes);
            prop_assert!(!bytes.is_empty() && bytes.len() <= 14);
        }
    }
}
